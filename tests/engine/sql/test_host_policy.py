"""Where a database may be: public hosts at its ports, and what the operator allows; every record is looked at."""

from __future__ import annotations

import pytest

from engine.net import AllowList, NetPolicy
from engine.sql.dsn import Dsn
from engine.sql.errors import SqlError
from engine.sql.host_policy import checked_place
from tests.engine.net.names import Names

pytestmark = pytest.mark.anyio

_PUBLIC = "93.184.216.34"


def _dsn(host: str, port: int = 5432) -> Dsn:
    return Dsn(host=host, port=port, user="app", password="", database="shop")


@pytest.mark.parametrize(
    ("host", "port", "answers", "allow", "said"),
    [
        ("db.example", 5432, [_PUBLIC], (), None),
        ("db.example", 6543, [_PUBLIC, "2606:4700::1"], (), None),
        ("db.example", 22, [_PUBLIC], (), "port 22 is not allowed"),
        ("db.example", 26257, [_PUBLIC], (), "port 26257 is not allowed"),
        ("db.example", 26257, [_PUBLIC], ("db.example:26257",), None),
        ("db.example", 5432, [_PUBLIC, "10.0.0.1"], (), "not, or not only, at a public address"),
        ("db.example", 5432, [_PUBLIC, "10.0.0.1"], ("10.0.0.0/8",), "not, or not only"),
        ("db.example", 5432, ["::ffff:127.0.0.1"], (), "not, or not only"),
        ("db.example", 5432, ["64:ff9b::7f00:1"], (), "not, or not only"),
        ("db.example", 5432, [], (), "there is no such host"),
        ("intranet", 5433, ["10.1.2.3"], ("10.0.0.0/8",), None),
        ("intranet", 5432, ["10.1.2.3"], ("intranet:5433",), "not, or not only"),
        ("localhost", 5432, ["127.0.0.1"], (), "not a public host"),
        ("127.0.0.1", 5432, [], (), "not, or not only"),
        ("169.254.169.254", 5432, [], (), "not, or not only"),
        ("::1", 5432, [], (), "not, or not only"),
        ("2130706433", 5432, [], (), "unusual spelling"),
        ("0x7f.1", 5432, [], (), "unusual spelling"),
        ("fe80::1%eth0", 5432, [], (), "network card"),
        ("db_1..example", 5432, [], (), "not a valid host"),
        ("bücher.example", 5432, [_PUBLIC], (), "not a valid host"),
    ],
)
async def test_hosts(host: str, port: int, answers: list[str], allow: tuple[str, ...], said: str | None) -> None:
    names = Names()
    names.answers[host] = [answers]
    policy = NetPolicy(allow=AllowList(allow))
    if said is None:
        place = await checked_place(_dsn(host, port), policy, names)
        assert sorted(place.addresses) == sorted(answers)
        assert place.inward == bool(allow)
        assert names.asked == [host]
        return
    with pytest.raises(SqlError, match=said) as refused:
        await checked_place(_dsn(host, port), policy, names)
    assert host not in str(refused.value)
    assert not any(answer in str(refused.value) for answer in answers)
