/* Devices and contexts, inside the simulated runtime. */
#ifndef ASCENDSIM_DEVICE_H
#define ASCENDSIM_DEVICE_H

#include <pthread.h>
#include <stdbool.h>

#define SIM_DEVICES 16

struct context {
	int device;
	bool is_default;
	struct stream *stream; /* the default one, made on first use */
	struct context *next;
};

struct device {
	int references;
	struct context *primary;
};

extern pthread_mutex_t sim_lock; /* of devices, contexts, and the lists of handles */

struct context *sim_current(void);
int sim_need_context(const char *call);

#endif
