"""Whether what is sent somewhere crosses the internet in clear."""

from __future__ import annotations

from engine.net.outgoing import parsed_url
from engine.net.resolver import system_resolver
from engine.net.target import Target
from engine.services import Services

__all__ = ("crosses_in_clear",)


async def crosses_in_clear(services: Services, url: str) -> bool:
    """Tell whether a URL that may be opened is neither encrypted nor in the operator's own networks.

    :raises UnsafeUserUrlError: if it may not be opened
    :raises Unreachable: if there is no such host
    """
    parsed, policy = parsed_url(url), services.net
    target = Target.of(parsed.scheme, parsed.raw_host, parsed.port, parsed.userinfo, policy)
    addresses = await target.addresses(policy, services.resolver or system_resolver)
    return target.scheme != "https" and not policy.allow.covers(target.host, target.port, addresses)
