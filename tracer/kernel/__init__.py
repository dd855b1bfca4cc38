"""The kernel side, loaded and read: bpf(2), programs, maps, links, rings."""
