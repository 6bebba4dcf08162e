"""The API as its OpenAPI document describes it: whatever is asked, within the description or not, it does not break."""

import shutil
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error

from lycosa.serve.server import make_app
from lycosa.serve.source import CollectionSource
from tests.serve.conftest import TOKEN

HEADERS = {"Host": "127.0.0.1:8480", "Authorization": f"Bearer {TOKEN}"}
EXAMPLES = 6  # for each operation


@pytest.fixture(scope="module")
def described(collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The API of a copy of the collection: it is steered."""
    into = shutil.copytree(collection, tmp_path_factory.mktemp("described") / "c")
    app = make_app(CollectionSource(into), token=TOKEN, replay_at="http://127.0.0.1:1/secret/")
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers=HEADERS)
    return schema.exclude(path="/api/v1/events")  # it never ends


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_api_answers_whatever_is_asked(mode: schemathesis.GenerationMode, described: Any) -> None:
    asked = 0

    def check(case: schemathesis.Case) -> None:
        nonlocal asked
        asked += 1
        case.call_and_validate(headers=HEADERS, checks=[not_a_server_error])

    for found in described.get_all_operations():
        operation = found.ok()
        if mode is schemathesis.GenerationMode.NEGATIVE and not (operation.query or operation.body):
            continue  # there is nothing that could be wrong
        try_out = given(case=operation.as_strategy(generation_mode=mode))(check)
        with patch("lycosa.serve.api.subprocess.Popen"):
            settings(max_examples=EXAMPLES, database=None, suppress_health_check=list(HealthCheck))(try_out)()
    assert asked > 10 * EXAMPLES
