/* The hub: ranks of a communicator send what they have to the process of the root,
 * which computes and answers. Real hardware exchanges among the cards; what can be
 * seen from outside is the same. */
#include "hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hub_answer(struct outbox *box, int code, const char *text, const void *payload, uint64_t bytes)
{
	struct reply r = { .code = code, .text = text == NULL ? 0 : (uint32_t)strlen(text), .bytes = bytes };
	char *out = malloc(sizeof r + r.text + bytes);
	memcpy(out, &r, sizeof r);
	if (r.text > 0)
		memcpy(out + sizeof r, text, r.text);
	if (bytes > 0)
		memcpy(out + sizeof r + r.text, payload, bytes);
	outbox_put(box, out, sizeof r + r.text + bytes);
}

void hub_forget(struct group *g, uint32_t rank)
{
	struct pending *p = g->pending[rank];
	g->pending[rank] = NULL;
	if (p == NULL)
		return;
	for (uint32_t i = 0; p->received != NULL && i < p->head.n_counts / 4; i++)
		free(p->received[i]);
	free(p->received);
	free(p->matched);
	free(p->counts);
	free(p->payload);
	free(p);
}

static const char *const kind_names[] = { "AllReduce", "Broadcast", "ReduceScatter", "ReduceScatterV", "AllGather", "AllGatherV", "Reduce", "Scatter", "AlltoAll", "SendRecv", "Barrier" };

static void describe(char *to, size_t size, struct pending *p)
{
	snprintf(to, size, "%s count %llu type %d op %d root %u", kind_names[p->head.kind], (unsigned long long)p->head.count, p->head.type, p->head.op, p->head.root);
}

static bool alike(struct pending *a, struct pending *b)
{
	if (a->head.kind != b->head.kind || a->head.type != b->head.type || a->head.op != b->head.op || a->head.root != b->head.root)
		return false;
	if (a->head.kind == REDUCE_SCATTER_V || a->head.kind == ALL_GATHER_V)
		return a->head.n_counts == b->head.n_counts && memcmp(a->counts, b->counts, a->head.n_counts * sizeof *a->counts) == 0;
	return a->head.kind == ALL_TO_ALL || a->head.count == b->head.count;
}

/* Gathers the parts of all ranks, each as a range of its payload. */
static void gather(struct group *g, uint32_t to, const uint64_t *from, const uint64_t *size)
{
	uint64_t total = 0;
	for (uint32_t r = 0; r < g->n; r++)
		total += size[r];
	char *out = malloc(total + 1);
	total = 0;
	for (uint32_t r = 0; r < g->n; r++) {
		memcpy(out + total, g->pending[r]->payload + from[r], size[r]);
		total += size[r];
	}
	hub_answer(g->boxes[to], 0, NULL, out, total);
	free(out);
}

/* Answers rank r, all ranks having asked for the same. reduced is the reduction of
 * all payloads, where there is one. */
static void serve(struct group *g, uint32_t r, const char *reduced)
{
	struct pending *p = g->pending[r], *root = g->pending[p->head.root < g->n ? p->head.root : 0];
	uint64_t element = ascendsim_type_size(p->head.type), part = p->head.count * element, from[SIM_RANKS] = { 0 }, size[SIM_RANKS] = { 0 };
	switch (p->head.kind) {
	case ALL_REDUCE:
		hub_answer(g->boxes[r], 0, NULL, reduced, part);
		break;
	case REDUCE:
		hub_answer(g->boxes[r], 0, NULL, reduced, r == p->head.root ? part : 0);
		break;
	case REDUCE_SCATTER:
		hub_answer(g->boxes[r], 0, NULL, reduced + r * part, part);
		break;
	case REDUCE_SCATTER_V:
		for (uint32_t k = 0; k < r; k++)
			from[0] += p->counts[k] * element;
		hub_answer(g->boxes[r], 0, NULL, reduced + from[0], p->counts[r] * element);
		break;
	case BROADCAST:
		hub_answer(g->boxes[r], 0, NULL, root->payload, r == p->head.root ? 0 : part);
		break;
	case SCATTER:
		hub_answer(g->boxes[r], 0, NULL, root->payload + r * part, part);
		break;
	case ALL_GATHER:
	case ALL_GATHER_V:
		for (uint32_t k = 0; k < g->n; k++)
			size[k] = g->pending[k]->head.bytes;
		gather(g, r, from, size);
		break;
	case ALL_TO_ALL:
		for (uint32_t k = 0; k < g->n; k++) {
			for (uint32_t i = 0; i < r; i++)
				from[k] += g->pending[k]->counts[i] * element;
			size[k] = g->pending[k]->counts[r] * element;
		}
		gather(g, r, from, size);
		break;
	default:
		hub_answer(g->boxes[r], 0, NULL, NULL, 0);
	}
}

static char *reduction(struct group *g)
{
	struct request *head = &g->pending[0]->head;
	if (head->kind != ALL_REDUCE && head->kind != REDUCE && head->kind != REDUCE_SCATTER && head->kind != REDUCE_SCATTER_V)
		return NULL;
	const void *in[SIM_RANKS];
	for (uint32_t r = 0; r < g->n; r++)
		in[r] = g->pending[r]->payload;
	char *out = malloc(head->bytes + 1);
	sim_reduce(head->type, head->op, out, in, g->n, head->bytes / ascendsim_type_size(head->type));
	return out;
}

/* Completes a collective operation when all ranks have asked; lock is held. */
void hub_complete(struct group *g)
{
	for (uint32_t r = 0; r < g->n; r++)
		if (g->pending[r] == NULL || g->pending[r]->head.kind == POINT_TO_POINT)
			return;
	char text[512] = "";
	for (uint32_t r = 1; r < g->n && text[0] == 0; r++) {
		if (!alike(g->pending[0], g->pending[r])) {
			char a[96], b[96];
			describe(a, sizeof a, g->pending[0]);
			describe(b, sizeof b, g->pending[r]);
			snprintf(text, sizeof text, "EI0005: the arguments of the ranks differ: rank 0 has %s, rank %u has %s", a, r, b);
		}
	}
	char *reduced = text[0] == 0 ? reduction(g) : NULL;
	for (uint32_t r = 0; r < g->n; r++) {
		if (text[0] != 0)
			hub_answer(g->boxes[r], RT_FFTS_TIMEOUT, text, NULL, 0);
		else
			serve(g, r, reduced);
	}
	free(reduced);
	for (uint32_t r = 0; r < g->n; r++)
		hub_forget(g, r);
}

static struct item *item_of(struct pending *p, uint32_t i) { return (struct item *)p->counts + i; }

/* Answers a batch all of whose items are matched. */
void hub_finish_batch(struct group *g, uint32_t r)
{
	struct pending *p = g->pending[r];
	uint64_t total = 0;
	for (uint32_t i = 0; i < p->head.n_counts / 4; i++)
		if (item_of(p, i)->receive)
			total += item_of(p, i)->count * ascendsim_type_size((int)item_of(p, i)->type);
	char *out = malloc(total + 1);
	total = 0;
	for (uint32_t i = 0; i < p->head.n_counts / 4; i++) {
		if (!item_of(p, i)->receive)
			continue;
		uint64_t size = item_of(p, i)->count * ascendsim_type_size((int)item_of(p, i)->type);
		memcpy(out + total, p->received[i], size);
		total += size;
	}
	hub_answer(g->boxes[r], 0, NULL, out, total);
	free(out);
	hub_forget(g, r);
}

/* The first item of rank r's batch for a peer and direction that is not matched. */
static bool open_item(struct pending *p, bool receive, uint32_t peer, uint32_t *at, uint64_t *offset)
{
	*offset = 0;
	for (uint32_t i = 0; i < p->head.n_counts / 4; i++) {
		struct item *x = item_of(p, i);
		if (x->receive == receive && x->peer == peer && !p->matched[i]) {
			*at = i;
			return true;
		}
		if (!x->receive)
			*offset += x->count * ascendsim_type_size((int)x->type);
	}
	return false;
}

/* Matches sends of one rank with receives of another, in order; lock is held. */
void hub_match(struct group *g, uint32_t from, uint32_t to)
{
	for (;;) {
		struct pending *a = g->pending[from], *b = g->pending[to];
		uint32_t i, k;
		uint64_t offset, unused;
		if (a == NULL || b == NULL || a->head.kind != POINT_TO_POINT || b->head.kind != POINT_TO_POINT)
			return;
		if (!open_item(a, false, to, &i, &offset) || !open_item(b, true, from, &k, &unused))
			return;
		struct item *x = item_of(a, i), *y = item_of(b, k);
		if (x->count != y->count || x->type != y->type) {
			char text[200];
			snprintf(text, sizeof text, "EI0005: rank %u sends %llu of type %llu, rank %u receives %llu of type %llu", from, (unsigned long long)x->count,
				 (unsigned long long)x->type, to, (unsigned long long)y->count, (unsigned long long)y->type);
			hub_answer(g->boxes[from], RT_FFTS_TIMEOUT, text, NULL, 0);
			if (to != from)
				hub_answer(g->boxes[to], RT_FFTS_TIMEOUT, text, NULL, 0);
			hub_forget(g, from);
			hub_forget(g, to);
			return;
		}
		uint64_t size = x->count * ascendsim_type_size((int)x->type);
		b->received[k] = malloc(size + 1);
		memcpy(b->received[k], a->payload + offset, size);
		a->matched[i] = b->matched[k] = true;
		a->left--, b->left--;
		if (b->left == 0)
			hub_finish_batch(g, to);
		if (g->pending[from] == a && a->left == 0)
			hub_finish_batch(g, from);
	}
}
