"""The example in docs/proof.md is one that runs."""

import io
import re
from pathlib import Path

from proof import Experiment
from proof.experiment import perform
from proof.progress import ProgressSteps

PAGE = Path(__file__).parents[2] / "docs" / "proof.md"


def test_lab_page_example_as_written_runs_and_holds() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(example, str(PAGE), "exec"), names)
    experiment = names["EXPERIMENT"]
    assert isinstance(experiment, Experiment)
    assert perform(experiment, seed=1, quick=True, view=ProgressSteps(io.StringIO())).held
