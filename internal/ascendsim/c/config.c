/* The configuration of a communicator, whose layout only grows: size, magic,
 * version, then fields by offset. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

static HcclResult bad(const char *what)
{
	ascendsim_message("EI0003: the communicator's configuration: %s", what);
	return HCCL_E_PARA;
}

static uint32_t word_at(const char *p, size_t offset)
{
	uint32_t v;
	memcpy(&v, p + offset, sizeof v);
	return v;
}

/* Where the fields of a version end. */
static size_t end_of(uint32_t version)
{
	static const size_t ends[] = { 24, 32, 160, 288, 292, 300, 312, 320, 2104, 2232, 2240, 2248 };
	return version < sizeof ends / sizeof *ends ? ends[version] : 2248;
}

HcclResult sim_read_config(const void *config, struct settings *out)
{
	const char *p = config;
	uint64_t size;
	memset(out, 0, sizeof *out);
	memcpy(&size, p, sizeof size);
	if (word_at(p, 8) != 0xF0F0F0F0)
		return bad("the magic number is wrong");
	uint32_t version = word_at(p, 12);
	const char *old = getenv("ASCENDSIM_OLD");
	if (old != NULL && *old == '1' && size != 32)
		return bad("this old library takes a size of 32 only");
	if (version == 0 || size < 32 || size > 1 << 16 || size < end_of(version))
		return bad("the size does not hold the fields of the version");
	uint32_t buffer = word_at(p, 24), deterministic = word_at(p, 28);
	if (buffer != 0xFFFFFFFF && buffer < 1)
		return bad("hcclBufferSize has to be at least 1");
	if (deterministic != 0xFFFFFFFF && (deterministic > 2 || (ascendsim_is_910a() && deterministic != 0)))
		return bad("hcclDeterministic has to be 0, 1 or 2, and 0 on 910");
	if (version >= 2) {
		if (memchr(p + 32, 0, 128) == NULL)
			return bad("hcclCommName has no end");
		memcpy(out->name, p + 32, 128);
	}
	if (version >= 5) {
		uint32_t class = word_at(p, 292), level = word_at(p, 296);
		if (word_at(p, 288) > 6 || (class != 0xFFFFFFFF && (class > 255 || class % 4 != 0)) || (level != 0xFFFFFFFF && level > 7))
			return bad("hcclOpExpansionMode, hcclRdmaTrafficClass or hcclRdmaServiceLevel is out of range");
	}
	return 0;
}

API HcclResult HcclSetConfig(int32_t config, HcclConfigValue value)
{
	return config == 0 && value.value >= 0 && value.value <= 2 ? HCCL_SUCCESS : HCCL_E_PARA;
}

API HcclResult HcclGetConfig(int32_t config, HcclConfigValue *value)
{
	value->value = 0;
	return config == 0 ? HCCL_SUCCESS : HCCL_E_PARA;
}

#ifndef ASCENDSIM_OLDEST
API uint32_t HcclGetCommConfigCapability(void)
{
	const char *layout = getenv("ASCENDSIM_CAPABILITY");
	return (uint32_t)ascendsim_ms(layout, ASCENDSIM_CANN >= 9 ? 12 : 5);
}
#endif

#if ASCENDSIM_CANN >= 9
static __thread int depth;

API HcclResult HcclGroupStart(void)
{
	depth++;
	return 0;
}

API HcclResult HcclGroupEnd(void)
{
	if (depth == 0)
		return HCCL_E_PARA;
	depth--;
	return 0;
}
#endif

API const char *HcclGetErrorString(HcclResult code)
{
	static const char *const texts[] = {
		"no error", "parameter error", "empty pointer", "memory error", "internal error", "not support feature", "not found specific resource",
		"resource unavailable", "call system interface error", "timeout", "open file fail", "tcp connect fail", "roce connect fail", "tcp transfer fail",
		"roce transfer fail", "call runtime api fail", "call driver api fail", "call profiling api fail", "call cce api fail", "call network api fail",
		"try again", "error cqe", "error communicator suspending",
	};
	return code >= 0 && code < (int)(sizeof texts / sizeof *texts) ? texts[code] : "unknown error";
}
