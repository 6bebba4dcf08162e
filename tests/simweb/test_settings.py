"""Settings say which one is wrong and what is allowed."""

import pytest

from lycosa.errors import SettingsError
from lycosa.simweb import SimSettings


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hosts": 0}, "--hosts is 0"),
        ({"hosts": 10, "pages": 9}, "--pages is 9, it must be between 10"),
        ({"sizes": "odd"}, "heavy, uniform"),
        ({"mirrors": 1.5}, "--mirrors is 1.5, a share is between 0 and 1"),
        ({"trouble": {"hang": -0.1}}, "--trouble hang is -0.1"),
        ({"trouble": {"hang": float("nan")}}, "--trouble hang is nan"),
        ({"trouble": {"fire": 0.1}}, "--trouble knows no 'fire'"),
        ({"trouble": {"hang": 0.6, "reset": 0.6}}, "add up to more than 1"),
        ({"robots": {"fire": 0.1}}, "--robots knows no 'fire'"),
        ({"dns": {"fire": 0.1}}, "--dns knows no 'fire'"),
        ({"rtt_ms": -1.0}, "rtt_ms is -1.0"),
        ({"rtt_ms": float("nan")}, "rtt_ms is nan"),
        ({"port": -5}, "--port is -5"),
    ],
)
def test_bad_setting_is_refused_with_a_sentence(change: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=None) as caught:
        SimSettings(**change)  # type: ignore[arg-type]
    assert words in str(caught.value)
