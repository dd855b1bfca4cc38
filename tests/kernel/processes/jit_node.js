// A target: leaks 13 x 100003 bytes through functions that V8 has compiled, and is killed before it can free them.
const kept = [];

function leaky(size) {
	kept.push(Buffer.allocUnsafeSlow(size));
}

function outer(count, size) {
	for (let i = 0; i < count; i++)
		leaky(size);
}

outer(13, 100003);
process.kill(process.pid, "SIGKILL");
for (;;);
