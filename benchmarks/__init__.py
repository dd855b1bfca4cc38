"""What refleak costs, beside the floor of empty probes and beside its peers; see docs/performance.md."""
