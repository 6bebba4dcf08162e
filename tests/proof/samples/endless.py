"""An experiment that goes on until it is interrupted."""

import time

from proof import Experiment, Run


def measure(run: Run) -> None:
    with run.progress(1_000_000, "steps") as step:
        for _ in range(1_000_000):
            time.sleep(0.01)
            step.advance()


EXPERIMENT = Experiment(name="endless", summary="goes on", claim_id="T8", claim="None.", bars=(), run=measure)
