/* The hub's threads: one for each listening socket, one for each rank. */
#define _GNU_SOURCE
#include "hub.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t hub_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct group *groups;

bool sim_read(int fd, void *to, size_t n)
{
	for (char *p = to; n > 0;) {
		ssize_t k = read(fd, p, n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		p += k, n -= (size_t)k;
	}
	return true;
}

bool sim_write(int fd, const void *from, size_t n)
{
	for (const char *p = from; n > 0;) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		p += k, n -= (size_t)k;
	}
	return true;
}

static struct pending *read_request(int fd)
{
	struct pending *p = calloc(1, sizeof *p);
	if (sim_read(fd, &p->head, sizeof p->head) && p->head.magic == SIM_MAGIC && p->head.kind <= BARRIER && p->head.n_counts <= 4 * 4096) {
		p->counts = calloc(p->head.n_counts + 1, sizeof *p->counts);
		p->payload = malloc(p->head.bytes + 1);
		p->left = p->head.n_counts / 4;
		p->matched = calloc(p->left + 1, 1);
		p->received = calloc(p->left + 1, sizeof *p->received);
		if (sim_read(fd, p->counts, p->head.n_counts * sizeof *p->counts) && sim_read(fd, p->payload, p->head.bytes))
			return p;
	}
	free(p->counts);
	free(p->payload);
	free(p->matched);
	free(p->received);
	free(p);
	return NULL;
}

static struct group *group_of(const struct hello *h)
{
	for (struct group *g = groups; g != NULL; g = g->next)
		if (strcmp(g->key, h->group) == 0)
			return g;
	struct group *g = calloc(1, sizeof *g);
	memcpy(g->key, h->group, sizeof g->key);
	g->n = h->n;
	g->fds = calloc(h->n, sizeof *g->fds);
	g->boxes = calloc(h->n, sizeof *g->boxes);
	g->pending = calloc(h->n, sizeof *g->pending);
	for (uint32_t r = 0; r < h->n; r++)
		g->fds[r] = -1;
	g->next = groups;
	groups = g;
	return g;
}

static void leave(struct group *g)
{
	if (--g->members > 0)
		return;
	struct group **at = &groups;
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	for (uint32_t r = 0; r < g->n; r++)
		hub_forget(g, r);
	free(g->fds);
	free(g->boxes);
	free(g->pending);
	free(g);
}

/* Lets a rank in when all are there; lock is held. */
static struct group *join(int fd, struct outbox *box, const struct hello *h, HcclResult *code)
{
	struct group *g = group_of(h);
	g->members++;
	*code = HCCL_SUCCESS;
	if (g->n != h->n || h->rank >= g->n || g->fds[h->rank] != -1) {
		*code = HCCL_E_PARA;
		leave(g);
		return NULL;
	}
	g->fds[h->rank] = fd;
	g->boxes[h->rank] = box;
	g->joined++;
	pthread_cond_broadcast(&changed);
	long long until = ascendsim_now() + h->timeout_ms;
	while (g->joined < g->n && !g->failed && ascendsim_now() < until) {
		struct timespec t;
		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_nsec += 20 * 1000000;
		t.tv_sec += t.tv_nsec / 1000000000, t.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&changed, &hub_lock, &t);
	}
	if (g->joined < g->n) {
		g->failed = true;
		*code = HCCL_E_TIMEOUT;
	}
	return g;
}

static void *serve_rank(void *arg)
{
	int fd = (int)(intptr_t)arg;
	struct hello h;
	struct group *g = NULL;
	struct outbox *box = outbox_open(fd);
	if (sim_read(fd, &h, sizeof h) && h.magic == SIM_MAGIC && h.n > 0 && h.n <= SIM_RANKS && memchr(h.group, 0, sizeof h.group) != NULL) {
		HcclResult code;
		pthread_mutex_lock(&hub_lock);
		g = join(fd, box, &h, &code);
		hub_answer(box, code, NULL, NULL, 0);
		pthread_mutex_unlock(&hub_lock);
		struct pending *p;
		while (code == HCCL_SUCCESS && (p = read_request(fd)) != NULL) {
			pthread_mutex_lock(&hub_lock);
			hub_forget(g, h.rank); /* a rank that gave up and asks again */
			g->pending[h.rank] = p;
			if (p->head.kind == POINT_TO_POINT) {
				if (p->left == 0)
					hub_finish_batch(g, h.rank);
				for (uint32_t r = 0; r < g->n; r++) {
					hub_match(g, h.rank, r);
					hub_match(g, r, h.rank);
				}
			} else {
				hub_complete(g);
			}
			pthread_mutex_unlock(&hub_lock);
		}
	}
	pthread_mutex_lock(&hub_lock);
	if (g != NULL) {
		hub_forget(g, h.rank);
		g->fds[h.rank] = -2; /* gone */
		g->boxes[h.rank] = NULL;
		leave(g);
	}
	pthread_mutex_unlock(&hub_lock);
	outbox_close(box);
	close(fd);
	ascendsim_count("hub threads", -1);
	return NULL;
}

static void detach(void *(*run)(void *), intptr_t arg)
{
	pthread_t t;
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_create(&t, &attributes, run, (void *)arg);
	pthread_attr_destroy(&attributes);
}

/* A listener lives as long as its process, as the vendor's does. */
static void *accept_ranks(void *arg)
{
	int listener = (int)(intptr_t)arg;
	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
			return NULL;
		if (fd < 0)
			continue;
		int one = 1;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		ascendsim_count("hub threads", 1);
		detach(serve_rank, fd);
	}
}

HcclResult sim_hub(const char *address, int first, int last, int *port)
{
	for (int p = first; p <= last; p++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)p) };
		inet_pton(AF_INET, address, &a.sin_addr);
		if (bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 512) == 0) {
			socklen_t size = sizeof a;
			getsockname(fd, (struct sockaddr *)&a, &size);
			*port = ntohs(a.sin_port);
			detach(accept_ranks, fd);
			return HCCL_SUCCESS;
		}
		close(fd);
	}
	ascendsim_message("EI0019: no port of %d to %d on %s is free: set HCCL_IF_BASE_PORT or HCCL_HOST_SOCKET_PORT_RANGE", first, last, address);
	return HCCL_E_TCP_CONNECT;
}

static socklen_t local_address(struct sockaddr_un *a, const char *name)
{
	memset(a, 0, sizeof *a);
	a->sun_family = AF_UNIX;
	snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "%s", name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a->sun_path + 1));
}

HcclResult sim_hub_local(const char *name)
{
	struct sockaddr_un a;
	socklen_t size = local_address(&a, name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(fd, (struct sockaddr *)&a, size) == 0 && listen(fd, 512) == 0) {
		detach(accept_ranks, fd);
		return HCCL_SUCCESS;
	}
	close(fd);
	return errno == EADDRINUSE ? HCCL_SUCCESS : HCCL_E_SYSCALL;
}

/* Connects, trying again until the time; -1 when it is over. A port of 0 means a
 * local name. */
int sim_dial(const char *address, int port, long long until)
{
	for (;;) {
		int fd, err;
		if (port == 0) {
			struct sockaddr_un a;
			socklen_t size = local_address(&a, address);
			fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
			err = connect(fd, (struct sockaddr *)&a, size);
		} else {
			struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
			inet_pton(AF_INET, address, &a.sin_addr);
			fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
			err = connect(fd, (struct sockaddr *)&a, sizeof a);
			int one = 1;
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		}
		if (err == 0)
			return fd;
		close(fd);
		if (ascendsim_now() >= until)
			return -1;
		poll(NULL, 0, 10);
	}
}
