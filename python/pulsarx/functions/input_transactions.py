"""Has what a function did with its inputs count, or nothing of it: EFFECTIVELY_ONCE.

    its instance          calls the function, input by input; what it does is collected
    this thread           takes all inputs that are done by then, and in one transaction
                          sends what they led to, and the state,
                          waits until it is stored,
                          acknowledges them,
                          commits

Where nothing was acknowledged yet, and a message cannot be sent, inputs are taken one by one, up to
the one at fault, which ends the function. Where a transaction was ended by others, or another
consumer has an input, all that is not committed is forgotten, and comes again.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.locks import Condition
from pulsarx._pycore.ground.threads import OwnThread
from pulsarx.enumerations import TransactionState
from pulsarx.functions.pending_sends import sentence_of
from pulsarx.functions.state_changes import applied, join
from pulsarx.ground.attempt import attempt
from pulsarx.results import Result
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.consumer import Consumer
    from pulsarx.functions.function_state import FunctionState
    from pulsarx.functions.host import Host
    from pulsarx.functions.input_effects import InputEffects, Publication
    from pulsarx.functions.state_changes import Changes, Value
    from pulsarx.message_id import MessageId
    from pulsarx.transaction import Transaction

# What is done and not committed. Above it the function waits.
INPUTS_MAX = 1000
BYTES_MAX = 4 * 1024 * 1024


class _Refused(Exception):
    """A message of a transaction cannot be sent. Nothing was acknowledged in it."""


class InputTransactions:
    """The transactions of one instance of a function, in a thread of their own. The instance calls
    but for `value`, which any thread may call."""

    def __init__(
        self, runner: Host, name: str, consumer: Consumer, wake: Callable[[], object]
    ) -> None:
        """wake: has the instance look whether its inputs come again."""
        self._runner = runner
        self._consumer = consumer
        self._wake = wake
        self._changed = Condition()  # of what follows
        self._done: list[InputEffects] = []
        self._done_bytes = 0
        self._done_changes: Changes = {}
        self._ending: list[InputEffects] = []  # in the transaction of this moment
        self._ending_changes: Changes = {}
        self._topics: dict[str, bool] = {}  # of inputs: whether they are persistent
        self._starts_again = False
        self._is_last = False  # no input follows
        self._has_failed = False
        self._thread = OwnThread(self._run, f"{name}-transactions")

    def start(self) -> None:
        self._thread.start()

    def runs_here(self) -> bool:
        """Whether a callback of the function is called, in the thread of this."""
        return self._thread.runs_here()

    def finish(self) -> None:
        """Return when all that was done is committed, or never will be."""
        with self._changed:
            self._is_last = True
            self._changed.notify_all()
        self._thread.join()

    def put(self, effects: InputEffects) -> None:
        """An input is done. Waits while much is not committed."""
        with self._changed:
            self._changed.wait_for(self._has_room)
            if self._has_failed or self._starts_again:
                return
            join(self._done_changes, effects.changes)
            self._done.append(effects)
            self._done_bytes += effects.byte_count
            self._changed.notify_all()

    def _has_room(self) -> bool:
        if self._has_failed or self._starts_again:
            return True
        return len(self._done) < INPUTS_MAX and self._done_bytes < BYTES_MAX

    def start_again(self) -> None:
        """Have the inputs come again of which it was found that they do not count. Nothing is done
        as a rule."""
        if self._starts_again:
            self._consumer.redeliver_unacknowledged_messages()
            with self._changed:
                self._starts_again = False

    def value(self, key: str, effects: InputEffects | None) -> Value:
        """Return what a key has for the function behind the inputs it had and what it did with this
        one."""
        state = self._runner.state()
        with self._changed:
            found = state.committed(key)
            current = {} if effects is None else effects.changes
            for changes in (self._ending_changes, self._done_changes, current):
                change = changes.get(key)
                if change is not None:
                    found = applied(key, found, change)
            return found

    # Its thread -----------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._take():
                self._end_all()
        except BaseException as error:
            self._fail(error)

    def _take(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._done or self._is_last or self._has_failed)
            if self._has_failed or not self._done:
                return False
            self._ending, self._ending_changes = self._done, self._done_changes
            self._done, self._done_changes, self._done_bytes = [], {}, 0
            self._changed.notify_all()
            return True

    def _end_all(self) -> None:
        inputs = self._ending
        try:
            try:
                self._end(inputs)
            except (_Refused, ValueError):  # of a counter that another instance gave a value
                if len(inputs) == 1:
                    raise
                for each in inputs:
                    self._end([each])
        except _Refused as error:
            cause = error.__cause__
            self._fail(error if cause is None else cause)
        except (errors.TransactionConflict, errors.InvalidTxnStatusError) as error:
            self._forget(error)

    def _forget(self, error: Exception) -> None:
        self._runner.logger.warning("inputs are taken again: %s", sentence_of(error))
        with self._changed:
            self._starts_again = True
            self._ending, self._ending_changes = [], {}
            self._done, self._done_changes, self._done_bytes = [], {}, 0
            self._changed.notify_all()
        self._wake()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._has_failed = True
            self._changed.notify_all()
        self._runner.fail(error)

    # One transaction ------------------------------------------------------------------------------

    def _end(self, inputs: list[InputEffects]) -> None:
        """Have inputs count, in one transaction. TransactionConflict, InvalidTxnStatusError: they
        come again. Whatever it raises, none of them counts, unless the disk failed in the end."""
        changes: Changes = {}
        for each in inputs:
            join(changes, each.changes)
        state = self._runner.state() if changes else None
        with nullcontext() if state is None else state.changing(changes):
            sent = _Sent(self._runner.client.new_transaction())
            try:
                self._send(inputs, state, sent)
                self._acknowledge(inputs, sent.transaction)
                self._commit(sent.transaction)
            except BaseException:
                if sent.transaction.state() is TransactionState.OPEN:
                    attempt(sent.transaction.abort)
                raise
            with self._changed:
                if state is not None:
                    state.keep()
                self._drop(inputs)
        self._tell(inputs, sent)

    def _drop(self, inputs: list[InputEffects]) -> None:
        self._ending = self._ending[len(inputs) :]
        self._ending_changes = {}
        for each in self._ending:
            join(self._ending_changes, each.changes)

    def _send(self, inputs: list[InputEffects], state: FunctionState | None, sent: _Sent) -> None:
        """_Refused: a message cannot be sent. InvalidTxnStatusError: others ended the
        transaction."""
        try:
            for each in inputs:
                for publication in each.publications:
                    if publication.is_kept:
                        sent.send(publication)
            if state is not None:
                sent.send_state(state)
            sent.wait()
        except Exception as error:
            if sent.transaction.state() is not TransactionState.OPEN:
                raise errors.InvalidTxnStatusError(detail=sentence_of(error)) from error
            raise _Refused(sentence_of(error)) from error

    def _acknowledge(self, inputs: list[InputEffects], transaction: Transaction) -> None:
        kept = [each.message for each in inputs if self._is_kept(each)]
        if kept:
            self._consumer.acknowledge_many(kept, transaction)

    def _is_kept(self, effects: InputEffects) -> bool:
        """False: no transaction takes its acknowledgement, as its topic is not persistent."""
        topic = effects.message.topic_name()
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = TopicName.of(topic).persistent
        return found

    def _commit(self, transaction: Transaction) -> None:
        try:
            transaction.commit()
        except errors.TransactionHasOperationFailed as error:
            cause = error.__cause__
            if isinstance(cause, (errors.TransactionConflict, errors.InvalidTxnStatusError)):
                raise cause from error
            raise

    def _tell(self, inputs: list[InputEffects], sent: _Sent) -> None:
        """They count: do what no transaction takes, and call who waits for that."""
        for each in inputs:
            for publication in each.publications:
                if publication.is_kept:
                    sent.call(publication, self._runner)
                else:
                    self._send_unkept(publication)
            if not self._is_kept(each):
                self._consumer.acknowledge(each.message)
            self._runner.figures.processed(each.milliseconds)

    def _send_unkept(self, publication: Publication) -> None:
        try:
            publication.producer.send_async(
                publication.payload, publication.callback, **publication.options
            )
        except errors.PulsarException as error:
            self._runner.logger.error("publish to %s: %s", publication.topic, sentence_of(error))


class _Sent:
    """Sends in a transaction, and notes what its callbacks are told."""

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self._producers: dict[Any, bool] = {}
        self._told = Condition()  # of what follows
        self._awaited = 0
        self._ids: dict[Publication, MessageId] = {}

    def send(self, publication: Publication) -> None:
        told: Callable[[Result, MessageId], None] | None = None
        if publication.callback is not None:
            told = partial(self._tell, publication)
            with self._told:
                self._awaited += 1
        self._producers[publication.producer] = True
        publication.producer.send_async(
            publication.payload, told, transaction=self.transaction, **publication.options
        )

    def _tell(self, publication: Publication, _: Result, message_id: MessageId) -> None:
        with self._told:
            self._ids[publication] = message_id
            self._awaited -= 1
            self._told.notify_all()

    def send_state(self, state: FunctionState) -> None:
        """Send what a state is about to become."""
        self._producers[state.producer] = True
        for key, data in state.messages():
            state.producer.send_async(data, None, partition_key=key, transaction=self.transaction)

    def wait(self) -> None:
        """Return when all of it is stored. Raises what one failed with."""
        for producer in list(self._producers):
            producer.flush()
        failure = self.transaction.failure
        if failure is not None:
            raise failure
        with self._told:
            self._told.wait_for(lambda: self._awaited == 0)

    def call(self, publication: Publication, runner: Host) -> None:
        """Call who waits for a message."""
        if publication.callback is None:
            return
        try:
            publication.callback(Result.Ok, self._ids[publication])
        except Exception as error:
            what = f"the callback of a message to {publication.topic}: {sentence_of(error)}"
            runner.figures.system_exception(what)
            runner.logger.error("%s", what)
