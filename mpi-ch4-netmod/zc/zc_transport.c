/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_impl.h"
#include "zc_transport.h"

/* UCX tells what it chose in words only: resources by "component/device". */
void MPIDI_ZC_transport_find(MPIDI_ZC_transport_t * transport)
{
    char *text = NULL;
    size_t length;

    *transport = (MPIDI_ZC_transport_t) { false, false, false };
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
        transport->streams = strstr(text, " tcp/") && !strstr(text, " rc_") &&
            !strstr(text, " dc_") && !strstr(text, " ud_") && !strstr(text, " ugni_");
    }
    free(text);
}
