#include <libavutil/buffer.h>
#include <libavutil/frame.h>
#include "mode.h"

int main(int argc, char **argv)
{
	AVBufferRef *buffer, *other;
	AVFrame *frame;

	read_mode(argc, argv);
	for (int i = 0; i < 3; i++) {
		buffer = av_buffer_allocz(64);
		other = av_buffer_ref(buffer);
		av_buffer_unref(&buffer);
		if (!leaks || i)
			av_buffer_unref(&other);
	}
	frame = av_frame_alloc();
	if (overputs) {
		AVFrame *again = frame;

		av_frame_free(&again);
	}
	av_frame_free(&frame);
	return 0;
}
