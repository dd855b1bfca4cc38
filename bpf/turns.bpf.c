// SPDX-License-Identifier: GPL-2.0
/*
 * The turns of loops: see REPEAT. What one does stands where its loop is, as
 * NAME_turn(); here it becomes a function that the verifier follows by itself.
 * This file comes last: those before it hold what their loops do.
 */

#include "maps.bpf.h"
#include "verifier.h"

/* 0 or 1, which the verifier wants to see. */
INLINE int bit(u64 is_last)
{
	MASK(is_last, 2);
	return is_last;
}

int turn_hold(struct turn turn)
{
	return bit(hold_turn());
}

int turn_step(struct turn turn)
{
	return bit(step_turn(*(struct thread **)turn.context));
}

int turn_part_walks(struct turn turn)
{
	return bit(part_walks_turn(*(struct thread **)turn.context));
}

int turn_compare_outer(struct turn turn)
{
	return bit(compare_outer_turn(turn.context, turn.index));
}

int turn_draw(struct turn turn)
{
	return bit(draw_turn(turn.context));
}

int turn_compare_stride(struct turn turn)
{
	return bit(compare_stride_turn(turn.context, turn.index));
}

int turn_compare_near(struct turn turn)
{
	return bit(compare_near_turn(turn.context, turn.index));
}

int turn_compare_segment(struct turn turn)
{
	return bit(compare_segment_turn(*(struct thread **)turn.context, turn.index));
}

int turn_push_step(struct turn turn)
{
	return bit(push_step_turn(*(struct thread **)turn.context));
}

int turn_outer_frame(struct turn turn)
{
	return bit(outer_frame_turn(*(struct thread **)turn.context));
}

int turn_find_held(struct turn turn)
{
	return bit(find_held_turn(*(struct thread **)turn.context, turn.index));
}

int turn_tell_held(struct turn turn)
{
	return bit(tell_held_turn(*(struct thread **)turn.context, turn.index));
}

int turn_find_ancestor(struct turn turn)
{
	return bit(find_ancestor_turn(turn.context));
}

int turn_find_around(struct turn turn)
{
	return bit(find_around_turn(turn.context, turn.index));
}

int turn_find_around_inherited(struct turn turn)
{
	return bit(find_around_inherited_turn(turn.context, turn.index));
}

int turn_drop_stale(struct turn turn)
{
	return bit(drop_stale_turn(turn.context));
}

int turn_find_call(struct turn turn)
{
	return bit(find_call_turn(turn.context, turn.index));
}

int turn_drop_returned(struct turn turn)
{
	return bit(drop_returned_turn(turn.context));
}

int turn_is_within(struct turn turn)
{
	return bit(is_within_turn(turn.context, turn.index));
}

int turn_dump_instance(struct turn turn)
{
	return bit(dump_instance_turn(turn.context, turn.index));
}

int turn_mix_word(struct turn turn)
{
	return bit(mix_word_turn(turn.context, turn.index));
}

int turn_keep_code(struct turn turn)
{
	return bit(keep_code_turn(turn.context, turn.index));
}

int turn_find_state(struct turn turn)
{
	return bit(find_state_turn(turn.context));
}

int turn_find_end(struct turn turn)
{
	return bit(find_end_turn(turn.context));
}

int turn_python_frame(struct turn turn)
{
	return bit(python_frame_turn(turn.context));
}

int turn_leave_lua(struct turn turn)
{
	return bit(leave_lua_turn(*(struct interpreter **)turn.context));
}

int turn_find_live(struct turn turn)
{
	return bit(find_live_turn(turn.context));
}

int turn_lua_call(struct turn turn)
{
	return bit(lua_call_turn(turn.context));
}

int turn_luajit(struct turn turn)
{
	return bit(luajit_turn(turn.context));
}

int turn_find_operand(struct turn turn)
{
	return bit(find_operand_turn(*(struct indirect_call **)turn.context, turn.index));
}

int turn_cut(struct turn turn)
{
	return bit(cut_turn(turn.context, turn.index));
}

int turn_write_return(struct turn turn)
{
	return bit(write_return_turn(turn.context));
}

int turn_drop_left(struct turn turn)
{
	return bit(drop_left_turn(turn.context));
}
