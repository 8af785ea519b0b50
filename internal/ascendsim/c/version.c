/* Which version the software says it is. */
#include "acl.h"
#include "sim.h"

#include <stdio.h>
#include <string.h>

#if ASCENDSIM_CANN >= 9
API aclError aclsysGetVersionStr(char *package, char *version)
{
	if (package == NULL || version == NULL)
		return ACL_INVALID_PARAM;
	strcpy(version, "9.0.0");
	return 0;
}

API aclError aclsysGetVersionNum(char *package, int32_t *number)
{
	if (package == NULL || number == NULL)
		return ACL_INVALID_PARAM;
	*number = 90000000;
	return 0;
}
#elif !defined(ASCENDSIM_OLDEST)
struct version { char version[128], major[64], minor[64], release[64], patch[64], reserved[128]; };

API aclError aclsysGetCANNVersion(int32_t package, struct version *out)
{
	if (package < 0 || package > 7 || out == NULL)
		return ACL_INVALID_PARAM;
	memset(out, 0, sizeof *out);
	strcpy(out->version, "8.1.RC1");
	strcpy(out->major, "8");
	strcpy(out->minor, "1");
	strcpy(out->release, "RC1");
	return 0;
}
#endif
