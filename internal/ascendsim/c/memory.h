/* What kind of memory an address is in, inside the simulated runtime. */
#ifndef ASCENDSIM_MEMORY_H
#define ASCENDSIM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

bool sim_pinned(const void *address, size_t bytes);
bool sim_host(const void *address, size_t bytes); /* anything but device memory */

#endif
