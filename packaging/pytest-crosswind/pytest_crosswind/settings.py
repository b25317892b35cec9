"""What a network test may set: the keys of a study without their table, `loss` for `path.loss`."""

from collections.abc import Mapping
from functools import cache

from crosswind.errors import UsageError

OF_RUNS = ("repetitions", "seed")
"""What is no setting of a path or a host, and may be set by a marker too."""

_OF_WORKLOAD = ("workload.port", "workload.timeout")


@cache
def keys() -> dict[str, str]:
    """The dotted key of every setting: `forward_loss` is `path.forward.loss`."""
    # Reading the catalogue takes a while, for which tests without a network should not wait.
    from crosswind.study.keys import SETTINGS

    of_path = [key for key in SETTINGS if not key.startswith("workload.")]
    return {"_".join(key.split(".")[1:]): key for key in (*of_path, *_OF_WORKLOAD)}


def check_names(settings: Mapping[str, object], where: str) -> None:
    """Raises: UsageError for a name that is no setting, with the closest one."""
    known = {*keys(), *OF_RUNS}
    for name in settings:
        if name not in known:
            from crosswind.errors import did_you_mean

            raise UsageError(f"{where} has no setting {name!r}", hint=did_you_mean(name, sorted(known)))
