"""Challenges and answers, by the examples of the RFCs."""

import pytest

from lycosa.sessions.authentication import Challenge, PasswordAnswers, parse_challenges


def test_several_challenges_in_one_field_are_read_apart() -> None:
    value = (
        'Negotiate, Basic realm="a, \\"b\\"", Digest realm="x", nonce="n=1", qop="auth, auth-int", algorithm=SHA-256'
    )
    found = parse_challenges(value)

    assert [challenge.scheme for challenge in found] == ["negotiate", "basic", "digest"]
    assert found[1].parameters == {"realm": 'a, "b"'}
    assert found[2].parameters == {"realm": "x", "nonce": "n=1", "qop": "auth, auth-int", "algorithm": "SHA-256"}
    assert max(found, key=lambda challenge: challenge.strength) is found[2]


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        'Digest realm="x"',
        'Digest nonce="n", algorithm=WHIRLPOOL',
        '=,"',
        'Digest nonce="n", qop="auth-int"',
    ],
)
def test_challenge_that_cannot_be_met_is_not_answered(value: str) -> None:
    answers = PasswordAnswers("ann", "secret")

    assert not answers.learn(value, was_answered=False)
    assert answers.answer("GET", "/") is None


@pytest.mark.parametrize(
    ("algorithm", "response"),
    [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ],
)
def test_digest_of_the_example_in_rfc_7616(algorithm: str, response: str) -> None:
    answers = PasswordAnswers("Mufasa", "Circle of Life")
    parameters = {
        "realm": "http-auth@example.org",
        "qop": "auth, auth-int",
        "algorithm": algorithm,
        "nonce": "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
        "opaque": "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS",
    }
    answers._count = 1
    cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
    answer = answers._digest(Challenge("digest", parameters), "GET", "/dir/index.html", cnonce)

    assert f'response="{response}"' in answer
    assert 'uri="/dir/index.html"' in answer
    assert "nc=00000001" in answer


def test_digest_without_qop_is_that_of_rfc_2069() -> None:
    answers = PasswordAnswers("Mufasa", "CircleOfLife")
    parameters = {"realm": "testrealm@host.com", "nonce": "dcd98b7102dd2f0e8b11d0f600bfb0c093"}

    answer = answers._digest(Challenge("digest", parameters), "GET", "/dir/index.html", "")
    assert 'response="1949323746fe6a43ef61f9606e7febea"' in answer
    assert "cnonce" not in answer


def test_count_goes_on_while_the_nonce_is_the_same_and_a_refused_answer_is_final() -> None:
    answers = PasswordAnswers("ann", "secret")
    challenge = 'Digest realm="r", nonce="n1", qop=auth'
    assert answers.learn(challenge, was_answered=False)
    assert "nc=00000001" in str(answers.answer("GET", "/"))
    assert answers.learn(challenge, was_answered=False)
    assert "nc=00000002" in str(answers.answer("GET", "/"))
    assert not answers.learn(challenge, was_answered=True)
    assert answers.learn('Digest realm="r", nonce="n2", qop=auth, stale=TRUE', was_answered=True)
    assert "nc=00000001" in str(answers.answer("GET", "/"))


def test_new_nonce_after_good_answers_is_taken_though_nobody_says_that_the_old_one_is_stale() -> None:
    answers = PasswordAnswers("ann", "secret")
    assert answers.learn('Digest realm="r", nonce="n1", qop=auth', was_answered=False)
    answers.has_worked = True
    assert answers.learn('Digest realm="r", nonce="n2", qop=auth', was_answered=True)
    assert not answers.learn('Digest realm="r", nonce="n3", qop=auth', was_answered=True)
