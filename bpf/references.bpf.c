// SPDX-License-Identifier: GPL-2.0
/* Counted objects: create, get, put, delete. */

#include "abi.h"
#include "events.bpf.h"
#include "freed_holders.bpf.h"
#include "fronts.bpf.h"
#include "locations.bpf.h"
#include "maps.bpf.h"
#include "programs.bpf.h"
#include "x86_64.h"
#include "stacks.bpf.h"
#include "threads.bpf.h"
#include "unwind.bpf.h"
#include "verifier.h"

/* Intern a type by its name; where the name's page is not resident, by where it stands. */
INLINE u64 type_of_name(struct thread *thread, u64 pointer)
{
	struct type_name type = {};
	u64 hash = 0xcbf29ce484222325ULL;

	if (bpf_probe_read_user_str(type.name, sizeof(type.name), (void *)pointer) <= 0) {
		type.pointer = pointer;
		type.pid = thread->pid;
		type.generation = thread->generation;
		type.source = TYPE_UNREAD;
		hash ^= pointer * 0x9e3779b97f4a7c15ULL ^ (u64)thread->pid << 32 ^ thread->generation;
	} else {
#pragma unroll
		for (int i = 0; i < NAME_BYTES / 8; i++) {
			u64 word;

			__builtin_memcpy(&word, &type.name[i * 8], 8);
			hash = (hash ^ word) * 0x100000001b3ULL;
			hash ^= hash >> 31;
		}
	}
	if (!map_lookup(TYPES, &hash) && map_update(TYPES, &hash, &type, ANY))
		lose(LOSS_TYPES_FULL);
	return hash;
}

/* Intern a type by the class that the object points to, in this address space; 0 where it points to none. */
INLINE u64 type_of_class(struct thread *thread, struct site *site, u64 object)
{
	struct type_name type = { .source = TYPE_CLASS, .otherwise = site->type };
	u64 at = object + (s64)site->name.adjust, hash = 0xcbf29ce484222325ULL;

	if (site->name.dereference) {
		u64 pointer = 0;

		if (bpf_probe_read_user(&pointer, sizeof(pointer), (void *)at))
			lose(LOSS_ARGUMENT_UNREAD);
		if (!pointer)
			return 0;
		at = pointer + (s64)site->name.offset;
	}
	if (bpf_probe_read_user(&type.pointer, sizeof(type.pointer), (void *)at))
		lose(LOSS_ARGUMENT_UNREAD);
	if (!type.pointer)
		return 0;
	type.pid = thread->pid;
	type.generation = thread->generation;
	hash = (hash ^ type.pointer) * 0x100000001b3ULL;
	hash ^= hash >> 31;
	hash = (hash ^ ((u64)type.pid << 32 | type.generation)) * 0x9e3779b97f4a7c15ULL;
	hash ^= hash >> 31;
	hash = (hash ^ type.otherwise) * 0x100000001b3ULL;
	hash ^= hash >> 31;
	if (!map_lookup(TYPES, &hash) && map_update(TYPES, &hash, &type, ANY)) {
		lose(LOSS_TYPES_FULL);
		return 0;
	}
	return hash;
}

INLINE void send_error(struct thread *thread, u8 kind, u64 counter, u16 group, u64 stack, u64 birth, u64 release,
		       u64 type, u32 serial)
{
	struct event *event = new_event(thread, OP_ERROR, counter);

	if (!event)
		return;
	event->error = kind;
	event->group = group;
	event->stack = stack;
	event->birth = birth;
	event->release = release;
	event->broken_type = type;
	event->serial = serial;
	send_event(event);
}

/* `subject`: of a create its type, of a get or put its holder. */
INLINE void send_reference(struct thread *thread, u8 operation, u8 flags, struct key *key, u64 stack, u64 subject,
			   s64 count, u32 serial)
{
	struct intent *intent = &thread->intent;
	struct event *event = new_event(thread, operation, key->address);

	if (!event)
		return;
	event->object = intent->object;
	event->stack = stack;
	if (operation == OP_CREATE)
		event->type = subject;
	else
		event->holder = subject;
	event->group = key->group;
	event->flags = flags | (intent->flags & OBJECT_COUNT_UNREAD ? EVENT_COUNT_UNREAD : 0);
	event->count_read = intent->count_read;
	event->count = count;
	event->serial = serial;
	send_event(event);
}

/* The type that a handle stands for; 0 where the call that named it was not seen. */
INLINE u64 type_of_handle(struct thread *thread, u64 handle, u16 group)
{
	struct key key = key_of(thread, handle, group);
	u64 *type = map_lookup(HANDLES, &key);

	return type ? *type : 0;
}

/* Note that `counter` belongs to `object` (slot empty: 0), or with `remove` that it no longer does. */
INLINE void link_counter(struct key *counter, u64 object, int remove)
{
	struct key key = *counter;
	struct counters *known;

	key.address = object;
	known = map_lookup(BY_OBJECT, &key);
	if (!known) {
		struct counters first = { .counter = { counter->address } };

		if (!remove && map_update(BY_OBJECT, &key, &first, ANY))
			lose(LOSS_OBJECTS_FULL);
		return;
	}
	u64 wanted = remove ? counter->address : 0, left = 0;
	int placed = 0;

#pragma unroll
	for (int i = 0; i < OBJECT_COUNTERS; i++) {
		if (!placed && (known->counter[i] == wanted || (!remove && known->counter[i] == counter->address))) {
			known->counter[i] = remove ? 0 : counter->address;
			placed = 1;
		}
		left |= known->counter[i];
	}
	if (remove && !left)
		map_delete(BY_OBJECT, &key);
	else if (!remove && !placed)
		lose(LOSS_OBJECTS_FULL);
}

/* End a live object and remember how, for what may come after; returns 0 if another thread was first. */
INLINE int end_object(struct key *key, struct object *object, u64 stack, int by_delete)
{
	struct released released = {
		.type = object->type,
		.birth = object->stack,
		.release = stack,
		.time_ns = bpf_ktime_get_ns(),
		.serial = object->serial,
		.by_delete = by_delete,
	};
	u64 owner = object->object;

	if (map_delete(OBJECTS, key))
		return 0;
	forget_counted(key, owner);
	map_update(RELEASED, key, &released, ANY);
	if (owner && !key->group)
		link_counter(key, owner, 1);
	return 1;
}

INLINE void created(struct thread *thread, struct site *site, struct key *key, u64 stack)
{
	struct intent *intent = &thread->intent;
	struct object *old = map_lookup(OBJECTS, key);
	struct object object = {};

	if (old) {
		u64 birth = old->stack, type = old->type;
		u32 serial = old->serial;

		int is_error = !(site->flags & SITE_REPLACES || old->flags & (OBJECT_ENDING | OBJECT_FOLLOWS));

		if (end_object(key, old, stack, 0)) {
			if (is_error)
				send_error(thread, ERROR_REINITIALISED, key->address, key->group, stack, birth, 0, type,
					   serial);
			send_reference(thread, OP_DELETE, EVENT_LAST, key, stack, 0, 0, serial);
		}
	}
	map_delete(RELEASED, key);
	if (intent->count <= 0)
		return;
	if (site->flags & SITE_NAMED)
		object.type = type_of_name(thread, intent->name);
	else if (site->flags & SITE_HANDLE)
		object.type = type_of_handle(thread, intent->name, key->group);
	else if (site->flags & SITE_CLASS)
		object.type = type_of_class(thread, site, intent->object);
	if (!object.type)
		object.type = site->type;
	object.object = intent->object;
	object.time_ns = bpf_ktime_get_ns();
	object.stack = stack;
	object.count = intent->count;
	object.initial = intent->count;
	object.tid = thread->tid;
	object.serial = (u32)object.time_ns | 1; /* differs from the last one at this address */
	object.site = intent->site;
	object.flags = intent->flags & OBJECT_FOLLOWS;
	if (map_update(OBJECTS, key, &object, ANY)) {
		lose(LOSS_OBJECTS_FULL);
		return;
	}
	note_counted(key, object.object);
	if (object.object && !key->group)
		link_counter(key, object.object, 0);
	send_reference(thread, OP_CREATE, 0, key, stack, object.type, object.count, object.serial);
}

/*
 * The count as followed. `puts` must be read first: other threads may get and
 * put meanwhile, and what they get must not be missed where what they put is not.
 */
INLINE s64 count_of(struct object *object)
{
	u64 puts = *(volatile u64 *)&object->puts;

	return object->count + *(volatile u64 *)&object->gets - puts;
}

/* Whether the memory of an ended object was given to another since: made where no probe is. */
INLINE int is_reused(struct thread *thread, struct key *key, struct released *released)
{
	struct key block_key = key_of(thread, thread->intent.object, 0);
	struct allocation block;

	return key->group && read_block(&block_key, &block) && block.time_ns > released->time_ns;
}

/* A get or put of what is not alive: after its end, or never seen to begin. */
INLINE void changed_unknown(struct thread *thread, struct key *key, u64 stack)
{
	struct intent *intent = &thread->intent;
	struct released *released = map_lookup(RELEASED, key);
	u8 kind = ERROR_USE_AFTER_ZERO;

	if (!released || is_reused(thread, key, released)) {
		send_reference(thread, intent->operation, EVENT_UNKNOWN, key, stack, intent->value, 0, 0);
		return;
	}
	if (intent->operation == OP_GET) {
		released->revived++;
	} else if (released->revived) {
		released->revived--; /* it gives back what was got in error: that one was told */
		return;
	} else if (!released->by_delete) {
		kind = ERROR_OVER_PUT;
	}
	send_error(thread, kind, key->address, key->group, stack, released->birth, released->release, released->type,
		   released->serial);
}

INLINE void changed(struct thread *thread, struct key *key, u64 stack)
{
	struct intent *intent = &thread->intent;
	struct object *object = map_lookup(OBJECTS, key);
	int is_get = intent->operation == OP_GET;
	u32 serial;
	s64 count;

	if (!object)
		return changed_unknown(thread, key, stack);
	if (intent->flags & OBJECT_FOLLOWS && intent->count_read > 0)
		object->count += intent->count_read - count_of(object);
	count = count_of(object);
	serial = object->serial;
	object->count_read = intent->count_read;
	object->drift = intent->flags & OBJECT_COUNT_UNREAD ? 0 : intent->count_read - (s32)count;
	object->flags |= intent->flags & (OBJECT_COUNT_UNREAD | OBJECT_FOLLOWS);
	if (object->tid != thread->tid)
		object->flags |= OBJECT_THREADS;
	if (is_get) {
		add(&object->gets, 1);
		send_reference(thread, OP_GET, 0, key, stack, intent->value, count + 1, serial);
		return;
	}
	add(&object->puts, 1);
	if (count_of(object) > 0) {
		send_reference(thread, OP_PUT, 0, key, stack, intent->value, count - 1, serial);
		return;
	}
	if (end_object(key, object, stack, 0))
		send_reference(thread, OP_PUT, EVENT_LAST, key, stack, intent->value, 0, serial);
	else
		changed_unknown(thread, key, stack);
}

/* Read what the site says of the object; returns 0 if there is none. */
INLINE int read_reference(struct pt_regs *ctx, struct thread *thread, struct site *site)
{
	READ_REGISTERS(registers, ctx);
	struct intent *intent = &thread->intent;

	intent->object = value_at(ctx, registers, &site->object);
	intent->address = site->flags & SITE_COUNTER ? value_at(ctx, registers, &site->counter) : intent->object;
	intent->count = site->count.kind ? value_at(ctx, registers, &site->count) : 1;
	intent->name = value_at(ctx, registers, &site->name);
	intent->value = value_at(ctx, registers, &site->holder);
	intent->flags = 0;
	intent->count_read = 0;
	if (!intent->address)
		return 0;
	if (!(site->flags & SITE_COUNTER) ||
	    bpf_probe_read_user(&intent->count_read, sizeof(intent->count_read), (void *)intent->address))
		intent->flags = OBJECT_COUNT_UNREAD;
	else
		intent->count_read -= (s32)value_at(ctx, registers, &site->size);
	return 1;
}

/* A get or put from a known stack is done here and now; all else needs a walk, or a program of its own. */
INLINE void reference_entered(struct pt_regs *ctx, struct thread *thread, struct site *site)
{
	u8 operation = site->operation;
	u32 then = operation == OP_DELETE ? PROGRAM_DELETE : PROGRAM_REFERENCE;
	struct key key;

	if (!read_reference(ctx, thread, site))
		return;
	if (!begin_walk_at(thread, STACK_POINTER(ctx) + site->return_distance, FRAME_POINTER(ctx)))
		return walk_then(ctx, thread, then);
	if (!thread->interpreters && (operation == OP_GET || operation == OP_PUT)) {
		key = key_of(thread, thread->intent.address, site->group);
		return changed(thread, &key, thread->walk.known);
	}
	go_on(ctx, thread, then);
}

int reference(struct pt_regs *ctx)
{
	struct thread *thread = same_thread();
	struct site *site;
	struct key key;
	u64 index, stack;

	if (!thread)
		return 0;
	index = thread->intent.site;
	MASK(index, MAX_SITES);
	site = &SITES->at[index];
	intern_stack(thread, &stack);
	key = key_of(thread, thread->intent.address, site->group);
	if (thread->intent.operation == OP_CREATE)
		created(thread, site, &key, stack);
	else
		changed(thread, &key, stack);
	return 0;
}

INLINE void deleted(struct thread *thread, struct key *key, u64 stack)
{
	struct object *object = map_lookup(OBJECTS, key);
	u64 birth, type;
	u32 serial;
	s64 count;

	if (!object)
		return;
	birth = object->stack;
	type = object->type;
	serial = object->serial;
	count = count_of(object);
	if (thread->intent.flags & OBJECT_FOLLOWS)
		count = thread->intent.count_read;
	if (!end_object(key, object, stack, 1))
		return;
	if (count > 0)
		send_error(thread, ERROR_DELETE_WHILE_REFERENCED, key->address, key->group, stack, birth, 0, type,
			   serial);
	send_reference(thread, OP_DELETE, EVENT_LAST, key, stack, 0, count, serial);
}

int reference_deleted(struct pt_regs *ctx)
{
	struct thread *thread = same_thread();
	struct counters counters = {};
	struct counters *known;
	struct site *site;
	u64 index, stack;
	struct key key;

	if (!thread)
		return 0;
	index = thread->intent.site;
	MASK(index, MAX_SITES);
	site = &SITES->at[index];
	intern_stack(thread, &stack);
	key = key_of(thread, thread->intent.address, site->group);
	if (!(site->flags & SITE_DELETES_OBJECT)) {
		deleted(thread, &key, stack);
		return 0;
	}
	known = map_lookup(BY_OBJECT, &key);
	if (!known)
		return 0;
	counters = *known;
#pragma unroll
	for (int i = 0; i < OBJECT_COUNTERS; i++) {
		key.address = counters.counter[i];
		if (key.address)
			deleted(thread, &key, stack);
	}
	return 0;
}

/* A block that holds counted objects was freed: told of each that is alive. */
int holder_freed(struct pt_regs *ctx)
{
	struct thread *thread = same_thread();

	if (!thread)
		return 0;
	REPEAT(HOLDER_PIECES * PIECE_WORDS, tell_held, &thread);
	thread->freed_holder.pieces = 0;
	return 0;
}
