"""Getting bytes: one request to one checked address, with hard limits on time and size."""
