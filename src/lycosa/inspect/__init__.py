"""Read-only views of a collection: status, why, hosts, tree, changes, stored pages."""
