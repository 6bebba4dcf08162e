"""The benchmark `peers` over HTTPS: nginx has a certificate of an authority that the run makes.

Lycosa verifies it; of the others those that verify certificates by default do, too. Connections are HTTP/1.1.
"""

from proof import Bar, Experiment, Run
from proof.bench import peers


def measure(run: Run) -> None:
    peers.measure(run, tls=True)


EXPERIMENT = Experiment(
    name="tls",
    summary="the benchmark peers over HTTPS, by nginx with a certificate authority of its own",
    run=measure,
    runs=3,
    choices=peers.EXPERIMENT.choices,
    bars=(Bar("the same pages", peers.OTHER_PAGES, "<=", 1.0),),
)
