"""Where a host lives: from a name to one checked address, by a resolver, a cache and the address guard."""
