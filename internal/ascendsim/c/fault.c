/* Faults for tests: ASCENDSIM_FAULTS="rank=1 kind=kill after=3; rank=0 kind=delay ms=50"
 * before operations, "rank=1 kind=stop at=join after=2" in the making of the process's
 * communicators. */
#define _GNU_SOURCE
#include "config.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fault { int rank, after, ms, count; char kind[16], at[16]; };

static bool next_fault(const char **at, struct fault *f)
{
	if (*at == NULL || **at == 0)
		return false;
	memset(f, 0, sizeof *f);
	f->count = 1;
	char one[128];
	size_t n = strcspn(*at, ";");
	snprintf(one, sizeof one, "%.*s", (int)n, *at);
	*at += n + ((*at)[n] == ';');
	char *save;
	for (char *word = strtok_r(one, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
		sscanf(word, "rank=%d", &f->rank);
		sscanf(word, "after=%d", &f->after);
		sscanf(word, "ms=%d", &f->ms);
		sscanf(word, "count=%d", &f->count);
		sscanf(word, "kind=%15s", f->kind);
		sscanf(word, "at=%15s", f->at);
	}
	return true;
}

int sim_fault_again(uint32_t rank)
{
	struct fault f;
	for (const char *at = getenv("ASCENDSIM_FAULTS"); next_fault(&at, &f);)
		if (f.rank == (int)rank && strcmp(f.kind, "again") == 0)
			return f.count;
	return 0;
}

static void signals(const struct fault *f)
{
	if (strcmp(f->kind, "kill") == 0)
		raise(SIGKILL);
	if (strcmp(f->kind, "stop") == 0)
		raise(SIGSTOP);
}

void sim_fault_join(int device)
{
	static int done; /* communicators that this process has begun to make */
	int n = __atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST);
	struct fault f;
	for (const char *at = getenv("ASCENDSIM_FAULTS"); next_fault(&at, &f);) {
		if (strcmp(f.at, "join") != 0 || f.rank != device || n != f.after)
			continue;
		signals(&f);
		if (strcmp(f.kind, "delay") == 0)
			poll(NULL, 0, f.ms);
	}
}

int sim_fault(struct comm *c, struct stream *stream, char *message, size_t size)
{
	static int done[SIM_RANKS]; /* operations of each rank in this process */
	int n = __atomic_fetch_add(&done[c->world], 1, __ATOMIC_SEQ_CST);
	struct fault f;
	for (const char *at = getenv("ASCENDSIM_FAULTS"); next_fault(&at, &f);) {
		if (f.rank != (int)c->world || n < f.after || f.at[0] != 0)
			continue;
		signals(&f);
		if (strcmp(f.kind, "delay") == 0)
			poll(NULL, 0, f.ms);
		if (strcmp(f.kind, "async") == 0)
			__atomic_store_n(&c->async_error, HCCL_E_REMOTE, __ATOMIC_SEQ_CST);
		if (strcmp(f.kind, "freeze") == 0 || strcmp(f.kind, "async") == 0) {
			while (!ascendsim_aborted(stream))
				poll(NULL, 0, 10);
			snprintf(message, size, "EI0013: the operation was aborted");
			return RT_FFTS_EXCEPTION;
		}
	}
	return 0;
}
