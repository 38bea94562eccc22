"""One verb on one limit, in this fresh interpreter; prints what its parts took, as JSON."""

import time

BEGAN = time.perf_counter()

import collections  # noqa: E402
import json  # noqa: E402
import resource  # noqa: E402
import sys  # noqa: E402

import jax  # noqa: E402

PARTS = {
    "jaxpr_trace_duration": "trace",
    "jaxpr_to_mlir_module_duration": "lower",
    "backend_compile_duration": "compile",
}


def main() -> None:
    spent, counts = collections.Counter(), collections.Counter()

    def listen(event: str, duration: float, **_) -> None:
        part = PARTS.get(event.rsplit("/", 1)[-1])
        if part:
            spent[part] += duration
            counts[part] += 1

    jax.monitoring.register_event_duration_secs_listener(listen)
    import deeplimits as dl
    import deeplimits.lab.compare

    verb, name = sys.argv[1:3]
    limit = dl.catalogue[name]()
    imported = time.perf_counter() - BEGAN
    str(getattr(dl, verb)(limit))
    usage = resource.getrusage(resource.RUSAGE_SELF)
    parts = {part: spent[part] for part in PARTS.values()}
    print(
        json.dumps({"import": imported, **parts, "programs": counts["compile"], "cpu": usage.ru_utime + usage.ru_stime})
    )


if __name__ == "__main__":
    main()
