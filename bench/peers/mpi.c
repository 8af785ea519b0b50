/* Times MPI collectives and prints a line of JSON for each size.
 *
 *     mpicc -O2 mpi.c -o mpi && mpirun -np 2 ./mpi allreduce f32 inplace 1024,1048576
 *
 * The third argument is inplace or apart (out of place). Types: f32 f64 i32 i64.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { APART = 128 << 10, WARMUP = 8, LEAST = 12, MOST = 5000 };
static const double budget = 0.5; /* seconds of timed calls for each size */

struct trial {
	const char *op;
	MPI_Datatype type;
	int count, part, inplace, rank, ranks;
	char *in, *out;
	size_t width;
};

static void call(struct trial *t) {
	void *in = t->inplace ? MPI_IN_PLACE : t->in;
	char *own = t->in + (size_t)t->rank * t->part * t->width;
	if (!strcmp(t->op, "allreduce"))
		MPI_Allreduce(in, t->inplace ? t->in : t->out, t->count, t->type, MPI_SUM, MPI_COMM_WORLD);
	else if (!strcmp(t->op, "broadcast"))
		MPI_Bcast(t->in, t->count, t->type, 0, MPI_COMM_WORLD);
	else if (!strcmp(t->op, "allgather"))
		MPI_Allgather(t->inplace ? MPI_IN_PLACE : (void *)own, t->part, t->type, t->inplace ? t->in : t->out, t->part, t->type, MPI_COMM_WORLD);
	else if (!strcmp(t->op, "reducescatter"))
		MPI_Reduce_scatter_block(in, t->inplace ? t->in : t->out, t->part, t->type, MPI_SUM, MPI_COMM_WORLD);
	else if (!strcmp(t->op, "reduce"))
		MPI_Reduce(t->inplace && t->rank == 0 ? MPI_IN_PLACE : t->in, t->inplace ? t->in : t->out, t->count, t->type, MPI_SUM, 0, MPI_COMM_WORLD);
	else {
		fprintf(stderr, "mpi.c has no %s\n", t->op);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
}

/* Runs n calls; times[i] becomes the slowest rank's time of call i. */
static void timed(struct trial *t, double *times, int n, int apart) {
	for (int i = 0; i < n; i++) {
		if (apart || i % 64 == 0)
			MPI_Barrier(MPI_COMM_WORLD);
		double start = MPI_Wtime();
		call(t);
		times[i] = MPI_Wtime() - start;
	}
	MPI_Allreduce(MPI_IN_PLACE, times, n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static int ascending(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *times, int n) {
	qsort(times, n, sizeof *times, ascending);
	return (times[(n - 1) / 2] + times[n / 2]) / 2;
}

/* The value 1 of every type, over all elements. */
static void ones(struct trial *t) {
	for (long i = 0; i < t->count; i++) {
		float f = 1;
		double d = 1;
		int s = 1;
		long long l = 1;
		void *one = t->type == MPI_FLOAT ? (void *)&f : t->type == MPI_DOUBLE ? (void *)&d : t->type == MPI_INT ? (void *)&s : (void *)&l;
		memcpy(t->in + i * t->width, one, t->width);
	}
}

static double value(struct trial *t, char *at) {
	return t->type == MPI_FLOAT ? *(float *)at : t->type == MPI_DOUBLE ? *(double *)at : t->type == MPI_INT ? *(int *)at : *(long long *)at;
}

static int right(struct trial *t) {
	int sums = strcmp(t->op, "broadcast") && strcmp(t->op, "allgather"), ok = 1;
	int length = !strcmp(t->op, "reducescatter") ? t->part : t->count;
	ones(t);
	call(t);
	char *result = t->inplace || !strcmp(t->op, "broadcast") ? t->in : t->out;
	if (strcmp(t->op, "reduce") || t->rank == 0)
		for (long i = 0; i < length; i++)
			ok = ok && value(t, result + i * t->width) == (sums ? t->ranks : 1);
	MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	memset(t->in, 0, t->count * t->width);
	memset(t->out, 0, t->count * t->width);
	return ok;
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	if (argc != 5) {
		fprintf(stderr, "mpi OP TYPE inplace|apart SIZES\n");
		return 2;
	}
	struct trial t = {.op = argv[1], .inplace = !strcmp(argv[3], "inplace")};
	t.type = !strcmp(argv[2], "f64") ? MPI_DOUBLE : !strcmp(argv[2], "i32") ? MPI_INT : !strcmp(argv[2], "i64") ? MPI_LONG_LONG : MPI_FLOAT;
	int width;
	MPI_Type_size(t.type, &width);
	t.width = width;
	MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &t.ranks);
	double *times = malloc(MOST * sizeof *times);
	for (char *size = strtok(argv[4], ","); size; size = strtok(NULL, ",")) {
		long bytes = atol(size);
		t.count = bytes / width;
		t.part = t.count / t.ranks;
		if (!strcmp(t.op, "allgather") || !strcmp(t.op, "reducescatter"))
			t.count = t.part * t.ranks;
		t.in = calloc(t.count + 1, width);
		t.out = calloc(t.count + 1, width);
		int ok = right(&t), apart = bytes > APART;
		timed(&t, times, WARMUP, apart);
		double typical = median(times, WARMUP);
		int n = budget / typical < LEAST ? LEAST : budget / typical > MOST ? MOST : (int)(budget / typical);
		timed(&t, times, n, apart);
		double middle = median(times, n);
		if (t.rank == 0) {
			printf("{\"op\": \"%s\", \"dtype\": \"%s\", \"bytes\": %ld, \"ranks\": %d, \"iters\": %d, \"lat_us_p50\": %.3f, \"lat_us_best\": %.3f, \"correct\": %s}\n",
			       t.op, argv[2], bytes, t.ranks, n, middle * 1e6, times[0] * 1e6, ok ? "true" : "false");
			fflush(stdout);
		}
		free(t.in);
		free(t.out);
	}
	free(times);
	MPI_Finalize();
	return 0;
}
