"""Which addresses are public."""

from __future__ import annotations

from ipaddress import ip_address

from engine.net.addresses import is_public

__all__ = ()

PUBLIC = "2606:4700::1111 ::ffff:8.8.8.8 172.32.0.1 100.128.0.1 8.8.8.8 64:ff9b::808:808 11.0.0.1 192.0.1.1 3ffe::1"
INWARD = """
0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.255.255.254 168.63.129.16
169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.8 192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1
198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
:: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:100.64.0.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1
100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1::
2002:808:808::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 2606:4700::1111%1 fec0::1 ff02::1
"""


def test_case_api_03_controls_are_public_and_everything_inward_is_not() -> None:
    wrong = [each for each in PUBLIC.split() if not is_public(ip_address(each))]
    wrong += [each for each in INWARD.split() if is_public(ip_address(each))]
    assert wrong == []
