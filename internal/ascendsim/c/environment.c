/* The environment variables of the collective library. A value out of its range
 * fails the making of a communicator; nothing is clamped. */
#include "comm.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static HcclResult bad(const char *name, const char *value, const char *range)
{
	ascendsim_message("EI0001: the environment variable %s=%s is invalid: %s", name, value, range);
	return HCCL_E_PARA;
}

static HcclResult number(const char *name, long low, long high, long multiple, const char *range)
{
	const char *text = getenv(name);
	if (text == NULL)
		return 0;
	char *end;
	long n = strtol(text, &end, 10);
	if (end == text || *end != 0 || n < low || n > high || n % multiple != 0)
		return bad(name, text, range);
	return 0;
}

/* "level0:NA;level1:ring" with the names that are known, or per operation. */
static HcclResult algorithm(void)
{
	const char *text = getenv("HCCL_ALGO");
	static const char *const legal[] = { "NA", "ring", "H-D_R", "NHR", "NHR_V1", "NB", "AHC", "pipeline", "pairwise" };
	if (text == NULL || *text == 0)
		return 0;
	char copy[1600];
	if (strlen(text) >= sizeof copy)
		return bad("HCCL_ALGO", text, "too long");
	strcpy(copy, text);
	char *save;
	for (char *part = strtok_r(copy, ";/", &save); part != NULL; part = strtok_r(NULL, ";/", &save)) {
		char *equals = strchr(part, '=');
		if (equals != NULL)
			part = equals + 1;
		char *colon = strchr(part, ':');
		if (strncmp(part, "level", 5) != 0 || colon != part + 6 || part[5] < '0' || part[5] > '2')
			return bad("HCCL_ALGO", text, "write level0:NA;level1:ALGORITHM");
		size_t i = 0;
		while (i < sizeof legal / sizeof *legal && strcmp(legal[i], colon + 1) != 0)
			i++;
		if (i == sizeof legal / sizeof *legal || (part[5] == '0' && i != 0))
			return bad("HCCL_ALGO", text, "no such algorithm");
	}
	return 0;
}

static HcclResult word(const char *name, const char *const *legal)
{
	const char *text = getenv(name);
	if (text == NULL)
		return 0;
	for (; *legal != NULL; legal++)
		if (strcasecmp(text, *legal) == 0)
			return 0;
	return bad(name, text, "no such value");
}

HcclResult sim_check_environment(void)
{
	static const char *const families[] = { "AF_INET", "AF_INET6", NULL };
	static const char *const deterministic[] = { "false", "true", "strict", NULL };
	HcclResult err = number("HCCL_CONNECT_TIMEOUT", 120, 7200, 1, "a whole number of seconds from 120 to 7200");
	if (err == 0 && ascendsim_is_910a())
		err = number("HCCL_EXEC_TIMEOUT", 1, 17340, 1, "seconds from 1 to 17340");
	else if (err == 0)
		err = number("HCCL_EXEC_TIMEOUT", 0, 2147483647, 1, "seconds from 0 to 2147483647");
	if (err == 0)
		err = number("HCCL_BUFFSIZE", 1, 1 << 20, 1, "MB, at least 1");
	if (err == 0)
		err = number("HCCL_IF_BASE_PORT", 1024, 65520, 1, "a port from 1024 to 65520");
	if (err == 0)
		err = number("HCCL_RDMA_TC", 0, 255, 4, "0 to 255, a multiple of 4");
	if (err == 0)
		err = number("HCCL_RDMA_SL", 0, 7, 1, "0 to 7");
	if (err == 0)
		err = number("HCCL_RDMA_RETRY_CNT", 1, 7, 1, "1 to 7");
	if (err == 0)
		err = number("HCCL_RDMA_TIMEOUT", 5, ascendsim_is_910a() ? 24 : 20, 1, "5 to 20 (910: 24)");
	if (err == 0)
		err = word("HCCL_SOCKET_FAMILY", families);
	if (err == 0 && !ascendsim_is_910a())
		err = word("HCCL_DETERMINISTIC", deterministic);
	if (err == 0)
		err = algorithm();
	struct in_addr unused;
	const char *ip = getenv("HCCL_IF_IP");
	if (err == 0 && ip != NULL && inet_pton(AF_INET, ip, &unused) != 1)
		err = bad("HCCL_IF_IP", ip, "an IPv4 address here");
	return err;
}

/* The simulator's own variables shorten what the real ranges would make long. */
long sim_connect_timeout(void)
{
	const char *seconds = getenv("HCCL_CONNECT_TIMEOUT");
	return ascendsim_ms(getenv("ASCENDSIM_CONNECT_TIMEOUT_MS"), seconds == NULL ? 120000 : atol(seconds) * 1000);
}

long sim_exec_timeout(void)
{
	const char *seconds = getenv("HCCL_EXEC_TIMEOUT");
	long ms = ascendsim_ms(getenv("ASCENDSIM_EXEC_TIMEOUT_MS"), seconds == NULL ? 1836000 : atol(seconds) * 1000);
	return ms == 0 ? 1L << 40 : ms; /* 0: never */
}
