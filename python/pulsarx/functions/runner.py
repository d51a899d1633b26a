"""Runs a function in this process, as `pulsar-admin functions localrun` does with a server."""

from __future__ import annotations

import logging
import os
import uuid

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.latch import Latch
from pulsarx._pycore.ground.locks import Lock
from pulsarx.client import Client
from pulsarx.functions.figures import Figures
from pulsarx.functions.function_config import FunctionConfig
from pulsarx.functions.function_instance import FunctionInstance
from pulsarx.functions.function_state import FunctionState
from pulsarx.functions.log_topic import LogTopicHandler
from pulsarx.functions.pending_sends import PendingSends, sentence_of
from pulsarx.functions.user_code import check_found, name_of
from pulsarx.ground.attempt import attempt
from pulsarx.ground.closing import Closing
from pulsarx.options.service_url import refuse_cluster
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from logging import Logger
    from typing import Any


class FunctionRunner:
    """Takes the messages of input topics through a function to an output topic, from `start` to
    `stop`. A context manager. Any thread may call, except that a function must not call `stop` on
    itself.

        with FunctionRunner(client, lambda text: text + "!", inputs=["words"], output="loud"):
            ...
    """

    def __init__(
        self,
        client: Client | str | os.PathLike[str],
        function: Any,
        *,
        name: str | None = None,
        **options: Any,
    ) -> None:
        """Check what is to be run. Nothing is opened before `start`.

        Args:
            client: One that is open, or a folder, for a client that lives from `start` to `stop`.
            function: A Function class or an instance of one, a module with `process(input)`,
                something to call with the input, or with input and context, or the name of one of
                these, as `module.Class`.
            name: The name of the function; None: its own.
            **options: Those of FunctionConfig: inputs, output, processing_guarantees, ...

        Raises:
            ValueError: It cannot be run so; the text says what to change.
            TypeError: There is no such option.
            InvalidTopicName: An option is no name of a topic.
            OperationNotSupported: PulsarX cannot do it.
        """
        self.function = function
        self._config = FunctionConfig(name=name or name_of(function), **options)
        self._given = client
        self._client: Client | None = None
        self._lock = Lock()  # of what follows
        self._instances: list[FunctionInstance] = []
        self._producer: Any = None  # of the outputs
        self._state: FunctionState | None = None
        self._log_handler: LogTopicHandler | None = None
        self._error: BaseException | None = None
        self._ended = False
        self._starting = Lock()  # taken by calls of the control plane only
        self._begun = False
        self._closing = Closing()
        self._stopped = Latch()
        self.figures: Figures = Figures()
        self.outputs: PendingSends = PendingSends()
        full_name = self._config.full_name
        self.function_id: str = str(uuid.uuid5(uuid.NAMESPACE_URL, f"function://{full_name}"))
        self.logger: Logger = logging.getLogger(f"pulsarx.functions.{full_name}")

    # Its life -------------------------------------------------------------------------------------

    def start(self) -> FunctionRunner:
        """Subscribe, and begin to call the function. Only once. Interrupted, it stops again.

        Returns:
            Itself.

        Raises:
            NotAllowedError: It was started before, or stopped.
            ConsumerBusy: The subscription has its only consumer already.
            OperationNotSupported: The client is one of a cluster.
        """
        control_plane.perform(self._start, (), lambda _: self._closing.finish(self._finish, None))
        return self

    def _start(self) -> None:
        with self._starting:
            if self._begun:
                raise errors.NotAllowedError(
                    detail=f"function {self._config.full_name} was started before, or stopped"
                )
            self._begun = True
            try:
                self._open()
                return
            except BaseException as error:
                failure = error
                self.fail(error)
        attempt(self.stop)
        raise failure

    def _open(self) -> None:
        given = self._given
        url = given._url.text if isinstance(given, Client) else given
        refuse_cluster(url, "a function")
        check_found(self.function)  # before there is a folder
        self._client = given if isinstance(given, Client) else Client(given)
        self._prepare_output()
        self._prepare_log()
        for index in range(self._config.parallelism):
            self._instances.append(FunctionInstance(self, self._config, index))
        for each in self._instances:
            each.start()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the function is asked to stop or fails.

        Args:
            timeout: Seconds of real time; None: for ever.

        Returns:
            Whether it was; False when the time is over.

        Raises:
            InterruptedByKeyboard: Ctrl-C was pressed.
        """
        return self._stopped.wait(timeout)

    def stop(self) -> None:
        """Finish the messages in hand and close. Messages not begun stay in the subscription.
        Raises the error that ended the function, when it failed.

        Raises:
            RuntimeError: The function calls it on itself.

        Durability:
            What the messages in hand led to is as durable as after send.
        """
        for each in self._instances:
            each.check_is_elsewhere()
        self.ask_to_stop()
        if not self._closing.told:
            self._closing.close(self._finish, None)

    def _finish(self) -> None:
        with self._starting:
            self._begun = True
        self.ask_to_stop()
        for each in self._instances:
            each.join()
        with self._lock:
            self._ended = True
        for step in self._last_steps():
            failure = attempt(step)
            self._error = self._error or failure
        if self._error is not None:
            raise self._error

    def _last_steps(self) -> list[Callable[[], object]]:
        producers = [] if self._producer is None else [self._producer]
        steps: list[Callable[[], object]] = [each.flush for each in producers]
        steps += [self.outputs.wait]
        steps += [each.context.settle for each in self._instances]
        steps += [each.close for each in self._instances]
        steps += [each.context.close for each in self._instances]
        steps += [each.close for each in producers]
        steps += [self.flush_state]
        if self._state is not None:
            steps += [self._state.close]
        if self._log_handler is not None:
            self.logger.removeHandler(self._log_handler)
            steps += [self._log_handler.close]
        if self._client is not None and self._client is not self._given:
            steps += [self._client.close]
        return steps

    def fail(self, error: BaseException) -> None:
        """Stop because an instance cannot go on; `stop` raises the error.

        Args:
            error: The first one counts.
        """
        with self._lock:
            is_first = self._error is None
            if is_first:
                self._error = error
        if is_first:
            # Handlers of logs are code of users, and may ask for the state.
            self.logger.error("function %s ends: %s", self._config.full_name, sentence_of(error))
        self.ask_to_stop()

    def ask_to_stop(self) -> None:
        """Begin no other message. Also for signal handlers; `stop` waits."""
        for each in list(self._instances):
            each.ask_to_stop()
        self._stopped.set()

    def __enter__(self) -> FunctionRunner:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.stop()
        else:  # the error of the block is the one to be told
            attempt(self.stop)

    # What it shows --------------------------------------------------------------------------------

    @property
    def error(self) -> BaseException | None:
        """The error that ended it; None: it runs, or was stopped."""
        return self._error

    def stats(self) -> dict[str, Any]:
        """Return the statistics since it started, under the names of `pulsar-admin functions
        stats`."""
        return self.figures.snapshot()

    def get_counter(self, key: str) -> int | None:
        """Return a counter of the function's state; None: there is none.

        Args:
            key: Its name.

        Raises:
            AlreadyClosed: The function was stopped.
            NotAllowedError: It was not started.
        """
        return control_plane.perform(self.state).counter(key)

    def get_state(self, key: str) -> bytes | None:
        """Return a value of the function's state; None: there is none.

        Args:
            key: Its name.

        Raises:
            AlreadyClosed: The function was stopped.
            NotAllowedError: It was not started.
        """
        return control_plane.perform(self.state).value(key)

    # What instances ask for -----------------------------------------------------------------------

    @property
    def client(self) -> Client:
        """The client that it uses.

        Raises:
            NotAllowedError: It was not started.
        """
        if self._client is None:
            raise errors.NotAllowedError(
                detail=f"function {self._config.full_name} was not started"
            )
        return self._client

    def flush_state(self) -> None:
        """Have the state durable, if there is one.

        Durability:
            The state is as durable as after send.
        """
        if self._state is not None:
            self._state.flush()

    def state(self) -> FunctionState:
        """Return the state, opened with the first call.

        Raises:
            AlreadyClosed: The function was stopped.
            NotAllowedError: It was not started.
        """
        with self._lock:
            if self._state is not None:
                return self._state
            if self._ended:
                raise errors.AlreadyClosed(detail=f"function {self._config.full_name}")
            _ = self.client  # who asks too early is told so, which does not end the function
            try:
                self._state = self._open_state()
                return self._state
            except Exception as error:
                failure = error
        self.fail(failure)
        raise failure

    def _open_state(self) -> FunctionState:
        topic, pattern = self._config.state_topic, self._config.pattern
        if pattern is not None and pattern.fullmatch(topic):
            raise errors.InvalidConfiguration(
                detail=f"topics_pattern={pattern.pattern!r} takes in {topic}, the function's own "
                "state"
            )
        return FunctionState(self.client, topic)

    def output_producer(self) -> Any:
        """Return the producer of the output topic.

        Raises:
            StorageError: It cannot be made.
        """
        with self._lock:
            if self._producer is None:
                self._producer = self.client.create_producer(
                    self._config.output or "", block_if_queue_full=True, send_timeout_millis=0
                )
            return self._producer

    def _prepare_output(self) -> None:
        output = self._config.output
        if not output:
            return
        name = TopicName.of(output)
        if self._config.effectively_once and not name.persistent:
            raise errors.OperationNotSupported(
                detail=f"EFFECTIVELY_ONCE: {name} keeps no messages, and takes part in no "
                "transaction"
            )
        self.output_producer()

    def _prepare_log(self) -> None:
        if self.logger.level == logging.NOTSET:
            self.logger.setLevel(logging.INFO)
        topic = self._config.log_topic
        if topic:
            self._log_handler = LogTopicHandler(self.client, topic, self._config.full_name)
            self.logger.addHandler(self._log_handler)
