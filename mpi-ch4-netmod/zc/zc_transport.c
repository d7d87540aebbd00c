/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_impl.h"
#include "zc_transport.h"

/* Is it the loopback device, or a bridge, which as a rule leads to containers or virtual
 * machines? */
static bool is_inner(const char *device)
{
    char path[64];

    snprintf(path, sizeof(path), "/sys/class/net/%s/bridge", device);
    return !strcmp(device, "lo") || access(path, F_OK) == 0;
}

/* Finds the first device that leads to other hosts, or else the first. UCX_NET_DEVICES decides
 * which devices UCX lists. */
static void find_device(MPIDI_ZC_transport_t * transport, const char *text)
{
    static const char prefix[] = " tcp/";

    for (const char *at = strstr(text, prefix); at; at = strstr(at, prefix)) {
        at += sizeof(prefix) - 1;
        const size_t length = strcspn(at, " :\n");
        char device[sizeof(transport->device)];
        if (length == 0 || length >= sizeof(device)) {
            continue;
        }
        memcpy(device, at, length);
        device[length] = '\0';
        if (!*transport->device || (is_inner(transport->device) && !is_inner(device))) {
            memcpy(transport->device, device, length + 1);
        }
    }
}

/* UCX reports its choice as text only, which names resources by "component/device". */
void MPIDI_ZC_transport_find(MPIDI_ZC_transport_t * transport)
{
    char *text = NULL;
    size_t length;

    *transport = (MPIDI_ZC_transport_t) {.device = "" };
    FILE *file = open_memstream(&text, &length);
    if (file) {
        ucp_context_print_info(MPIDI_ZC_global.context, file);
        fclose(file);
    }
    if (text) {
        transport->shared_memory = strstr(text, " posix/") || strstr(text, " sysv/") ||
            strstr(text, " xpmem/");
        transport->one_copy = transport->shared_memory &&
            (strstr(text, " cma/") || strstr(text, " knem/") || strstr(text, " xpmem/"));
        transport->cma = strstr(text, " cma/");
        transport->streams = strstr(text, " tcp/") && !strstr(text, " rc_") &&
            !strstr(text, " dc_") && !strstr(text, " ud_") && !strstr(text, " ugni_");
        find_device(transport, text);
    }
    free(text);
}
