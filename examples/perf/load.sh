#!/bin/sh
# some processes, threads, libraries
for i in 1 2 3; do
  ls -lR /usr/share/doc/libc6 /etc/apt >/dev/null
  awk 'BEGIN{for(i=0;i<300000;i++) s+=i; print s}' >/dev/null
  python3 -c 'import json,threading
def f():
    s=0
    for i in range(200000): s+=i
t=[threading.Thread(target=f,name="w%d"%i) for i in range(3)]
[x.start() for x in t]; [x.join() for x in t]'
done
