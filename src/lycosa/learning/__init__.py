"""What is learned of hosts while they are crawled: traps, series of pages, query parameters, hosts without end."""

from lycosa.learning.budgets import TrapGuard, domain_key, unpack_domain
from lycosa.learning.guesses import UrlMining
from lycosa.learning.mining import MiningLevel
from lycosa.learning.profiles import HostProfiles
from lycosa.learning.series import ancestors
from lycosa.learning.traps import fold

__all__ = ["HostProfiles", "MiningLevel", "TrapGuard", "UrlMining", "ancestors", "domain_key", "fold", "unpack_domain"]
