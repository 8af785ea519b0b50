/* Settings of a communicator, and faults, inside the simulated collective library. */
#ifndef ASCENDSIM_CONFIG_H
#define ASCENDSIM_CONFIG_H

#include "comm.h"

struct settings { char name[128]; };

HcclResult sim_read_config(const void *config, struct settings *out);
void sim_fault_join(int device);
int sim_fault_again(uint32_t rank);
/* Does what ASCENDSIM_FAULTS wants before an operation of a rank; a code and text
 * when the operation fails by it. */
int sim_fault(struct comm *c, struct stream *stream, char *message, size_t size);

#endif
