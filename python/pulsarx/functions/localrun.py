"""`python -m pulsarx functions localrun`: runs a function on a folder until it is told to stop.

The options are those of `pulsar-admin functions localrun`; --root names the folder. SIGTERM, SIGINT
and SIGHUP end it: the message in hand is finished and everything is stored; a second one ends the
process at once.
"""

from __future__ import annotations

import argparse
import signal

import pulsarx
from pulsarx import errors
from pulsarx.functions.guarantees import GUARANTEES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.functions.runner import FunctionRunner

LOOK_SECONDS = 0.2  # how often it looks whether a signal came

# Options of pulsar-admin that ask for something a process alone has not.
_REFUSED = {
    "broker-service-url": "the function runs on the folder of --root, without a broker",
    "web-service-url": "the function runs on the folder of --root, without a broker",
    "state-storage-service-url": "the state is in a topic of the folder",
    "client-auth-plugin": "a folder has no authentication",
    "client-auth-params": "a folder has no authentication",
    "jar": "only functions in Python are run",
    "go": "only functions in Python are run",
    "schema-type": "functions in Python have a --output-serde-classname",
    "custom-schema-inputs": "functions in Python have --custom-serde-inputs",
    "custom-schema-outputs": "functions in Python have a --output-serde-classname",
    "input-specs": "use --inputs and --custom-serde-inputs",
    "input-type-class-name": "functions in Python have --custom-serde-inputs",
    "output-type-class-name": "functions in Python have a --output-serde-classname",
    "producer-config": "the producer of outputs is not configured",
    "runtime-flags": "there is no process besides this one",
    "window-length-count": "functions in Python have no windows",
    "window-length-duration-ms": "functions in Python have no windows",
    "sliding-interval-count": "functions in Python have no windows",
    "sliding-interval-duration-ms": "functions in Python have no windows",
    "cpu": "resources are not limited",
    "ram": "resources are not limited",
    "disk": "resources are not limited",
    "fqfn": "use --tenant, --namespace and --name",
}
# Names in a function configuration file: (option of FunctionConfig, or of this program).
_FILE_KEYS = {
    "tenant": "tenant",
    "namespace": "namespace",
    "name": "name",
    "className": "classname",
    "py": "py",
    "inputs": "inputs",
    "topicsPattern": "topics_pattern",
    "customSerdeInputs": "custom_serde_inputs",
    "output": "output",
    "outputSerdeClassName": "output_serde",
    "logTopic": "log_topic",
    "processingGuarantees": "processing_guarantees",
    "retainOrdering": "retain_ordering",
    "retainKeyOrdering": "retain_key_ordering",
    "userConfig": "user_config",
    "secrets": "secrets",
    "parallelism": "parallelism",
    "timeoutMs": "timeout_ms",
    "autoAck": "auto_ack",
    "maxMessageRetries": "max_message_retries",
    "deadLetterTopic": "dead_letter_topic",
    "subName": "subs_name",
    "subscriptionPosition": "subs_position",
}


def _json(text: str) -> dict[str, Any]:
    import json

    try:
        found = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"no JSON: {error}") from error
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError("a JSON object is needed, {...}")
    return found


def _flag(text: str) -> bool:
    known = {"true": True, "false": False}
    if text.lower() not in known:
        raise argparse.ArgumentTypeError("true or false")
    return known[text.lower()]


def _topics(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m pulsarx functions localrun",
        usage="%(prog)s --root FOLDER --classname NAME [option...]",
        description="Runs a function in this process, on the topics of a folder.",
        argument_default=argparse.SUPPRESS,
        allow_abbrev=False,
    )
    add = made.add_argument
    add("--root", required=True, help="the folder")
    add("--py", help="the file of the function; modules beside it can be imported")
    add("--classname", help="module.Class, or a module that has process(input)")
    add("--function-config-file", help="these options, as YAML (needs PyYAML) or JSON")
    add("--inputs", "-i", type=_topics, help="topics, with commas between")
    add("--topics-pattern", help="a pattern of topics, in place of --inputs")
    add("--custom-serde-inputs", type=_json, help='{"topic": "module.SerDe"}')
    add("--output", "-o", help="the topic of outputs; without one they are dropped")
    add("--output-serde-classname", dest="output_serde", help="module.SerDe of outputs")
    add("--log-topic", help="what the function logs is published there")
    add("--tenant", help="public")
    add("--namespace", help="default")
    add("--name", help="of the function; that of its class")
    add("--user-config", type=_json, help="JSON for Context.get_user_config_value")
    add("--secrets", type=_json, help="JSON for Context.get_secret")
    add("--processing-guarantees", choices=GUARANTEES, help="ATLEAST_ONCE")
    add("--subs-name", help="of the subscription; tenant/namespace/name")
    add("--subs-position", choices=["Latest", "Earliest"], help="of a new subscription; Latest")
    # pulsar-admin has these with and without a value
    for name, text in (
        ("--retain-ordering", "inputs are processed in order"),
        ("--retain-key-ordering", "inputs of a key are processed in order"),
        ("--auto-ack", "inputs are acknowledged without Context.ack; true"),
    ):
        add(name, type=_flag, nargs="?", const=True, help=text)
    add("--max-message-retries", type=int, help="of a message with which the function fails")
    add("--dead-letter-topic", help="where it goes then; tenant/namespace/name-DLQ")
    add("--timeout-ms", type=int, help="after which an input comes again that is not acknowledged")
    add("--parallelism", type=int, help="how many threads call the function; 1")
    for name, reason in _REFUSED.items():
        add(f"--{name}", action=_Refused, nargs="?", help=argparse.SUPPRESS, const=reason)
    return made


class _Refused(argparse.Action):
    """An option that pulsar-admin has and this program cannot have."""

    def __call__(self, parser: Any, *_: object) -> None:
        parser.error(f"{self.option_strings[0]} is not supported: {self.const}")


def read_config_file(path: str) -> dict[str, Any]:
    """Options by the names of FunctionConfig, and classname and py.

    ValueError: it has others. ImportError: it is YAML, and PyYAML is missing.
    """
    with open(path, encoding="utf-8") as file:
        if path.endswith(".json"):
            import json

            found = json.load(file)
        else:
            try:
                import yaml
            except ImportError as error:
                raise ImportError(
                    f"{path}: YAML needs the package PyYAML, which is not installed, and JSON does "
                    "not: pip install 'pulsarx[functions]'"
                ) from error
            found = yaml.safe_load(file)
    if not isinstance(found, dict):
        raise ValueError(f"{path}: it holds no options")
    unknown = sorted(set(found) - set(_FILE_KEYS))
    if unknown:
        raise ValueError(f"{path}: not supported: {', '.join(map(str, unknown))}")
    return {_FILE_KEYS[key]: value for key, value in found.items() if value is not None}


def main(arguments: list[str]) -> int:
    """0: it was told to stop. 1: it failed. 2: it cannot be run so."""
    made = parser()
    options = vars(made.parse_args(arguments))
    # Help is shown without them.
    import logging

    from pulsarx.functions.runner import FunctionRunner
    from pulsarx.functions.user_code import add_folder

    root = options.pop("root")
    logging.basicConfig(level=logging.INFO, format="[%(asctime)s] [%(levelname)s]: %(message)s")
    try:
        path = options.pop("function_config_file", None)
        if path is not None:
            options = {**read_config_file(path), **options}
        classname, py = options.pop("classname", None), options.pop("py", None)
        if not classname:
            made.error("--classname is needed, or className in --function-config-file")
        if py:
            add_folder(py)
        runner = FunctionRunner(root, classname, **options)
        # User code imports `pulsar`; a client that it opens itself is on this folder too.
        pulsarx.install_as_pulsar(routes={"pulsar://localhost:6650": root})
    except (ValueError, TypeError, ImportError, OSError, errors.PulsarException) as error:
        made.error(errors.detail_of(error))
    return run_until_told(runner)


def run_until_told(runner: FunctionRunner) -> int:
    """Like main; the signals have their handlers again afterwards."""
    import logging

    from pulsarx.functions.pending_sends import sentence_of

    received: list[int] = []

    def told(number: int, _: object) -> None:
        # Takes no lock: the main thread may hold any.
        received.append(number)
        for each in before:
            signal.signal(each, signal.SIG_DFL)

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, told) for number in numbers}
    logger = logging.getLogger("pulsarx")
    try:
        runner.start()
        while not received and not runner.wait(LOOK_SECONDS):
            pass
        if received:
            logger.info("Interrupted by %d, shutting down", received[0])
        runner.stop()
        return 0
    except Exception as error:
        users = not isinstance(error, errors.PulsarException)  # its traceback is for the user
        logger.error("%s", sentence_of(error), exc_info=users)
        return 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
