/* The hub's answers on their way. */
#define _GNU_SOURCE
#include "hub.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

struct answer { void *bytes; size_t n; struct answer *next; };

struct outbox {
	int fd;
	pthread_t writer;
	struct answer *first, *last;
	bool closing;
};

/* Under hub_lock. */
static pthread_cond_t put = PTHREAD_COND_INITIALIZER;
static long owed, written; /* answers that are not written, and that ever were */

static void *write_answers(void *arg)
{
	struct outbox *box = arg;
	pthread_mutex_lock(&hub_lock);
	for (;;) {
		while (box->first == NULL && !box->closing)
			pthread_cond_wait(&put, &hub_lock);
		struct answer *a = box->first;
		if (a == NULL)
			break;
		box->first = a->next;
		pthread_mutex_unlock(&hub_lock);
		sim_write(box->fd, a->bytes, a->n); /* one that is gone misses nothing */
		free(a->bytes);
		free(a);
		pthread_mutex_lock(&hub_lock);
		owed--, written++;
	}
	pthread_mutex_unlock(&hub_lock);
	return NULL;
}

struct outbox *outbox_open(int fd)
{
	struct outbox *box = calloc(1, sizeof *box);
	box->fd = fd;
	pthread_create(&box->writer, NULL, write_answers, box);
	return box;
}

void outbox_put(struct outbox *box, void *bytes, size_t n)
{
	if (box == NULL) { /* the rank is gone */
		free(bytes);
		return;
	}
	struct answer *a = calloc(1, sizeof *a);
	a->bytes = bytes, a->n = n;
	if (box->first == NULL)
		box->first = a;
	else
		box->last->next = a;
	box->last = a;
	owed++;
	pthread_cond_broadcast(&put);
}

void outbox_close(struct outbox *box)
{
	pthread_mutex_lock(&hub_lock);
	box->closing = true;
	pthread_cond_broadcast(&put);
	pthread_mutex_unlock(&hub_lock);
	pthread_join(box->writer, NULL);
	free(box);
}

/* Waits until the answers that this process owes others are on their way: a rank may
 * end its process right after its own. It gives up when none was written for a while,
 * by looks rather than by the clock, as this process may not get to run. */
void sim_hub_settle(void)
{
	long last = -1;
	for (int looks = 0; looks < 100; looks++) {
		pthread_mutex_lock(&hub_lock);
		bool all = owed == 0;
		if (written != last)
			last = written, looks = 0;
		pthread_mutex_unlock(&hub_lock);
		if (all)
			return;
		poll(NULL, 0, 10);
	}
}
