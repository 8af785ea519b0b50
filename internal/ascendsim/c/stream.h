/* Streams, inside the simulated runtime. */
#ifndef ASCENDSIM_STREAM_H
#define ASCENDSIM_STREAM_H

#include <pthread.h>
#include <stdbool.h>

struct stream;

struct stream *sim_stream(const char *call, void *handle, int *err);
bool sim_wait(pthread_cond_t *changed, pthread_mutex_t *lock, long long until);

#endif
