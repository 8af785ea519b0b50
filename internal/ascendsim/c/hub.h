/* The hub's state, inside the simulated collective library. */
#ifndef ASCENDSIM_HUB_H
#define ASCENDSIM_HUB_H

#include "comm.h"

/* What a rank has asked for and not been answered. */
struct pending {
	struct request head;
	uint64_t *counts;
	char *payload;
	bool *matched; /* of items */
	uint64_t left; /* items not matched */
	char **received;
};

/* Answers on their way to a rank, which a thread writes: one that does not read them,
 * as its process is stopped, must hold nobody else up. */
struct outbox;

struct group {
	char key[160];
	uint32_t n, joined, members;
	int *fds;
	struct outbox **boxes;
	struct pending **pending;
	bool failed;
	struct group *next;
};

extern pthread_mutex_t hub_lock; /* of all that follows; the functions want it held */

void hub_answer(struct outbox *box, int code, const char *text, const void *payload, uint64_t bytes);
struct outbox *outbox_open(int fd);
void outbox_put(struct outbox *box, void *bytes, size_t n); /* which it frees */
void outbox_close(struct outbox *box);                      /* without the lock */
void hub_forget(struct group *g, uint32_t rank);
void hub_complete(struct group *g);
void hub_finish_batch(struct group *g, uint32_t rank);
void hub_match(struct group *g, uint32_t from, uint32_t to);

#endif
