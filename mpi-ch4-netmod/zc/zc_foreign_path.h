/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_FOREIGN_PATH_H_INCLUDED
#define ZC_FOREIGN_PATH_H_INCLUDED

/* What a path (zc_path.h) needs of the connection to a process of another world (zc_foreign.h), whose
 * structure it does not know. Such a path is there as long as the connection; a process has one for each VCI
 * on which there are communicators with it.
 *
 * All functions are called inside the lock of the connection's VCI, or those of all if they have none, and
 * outside callbacks of UCP unless their comment says otherwise. */

#include "zc_impl.h"

struct MPIDI_ZC_foreign;

/* Returns the number of the path, or -1. It is called in callbacks, too. */
int MPIDI_ZC_foreign_path(const struct MPIDI_ZC_foreign *foreign);

/* The same of the connection by which the process sends as @sender, to which there is an endpoint. */
int MPIDI_ZC_foreign_path_of_sender(uint64_t sender);

/* The same of the connection by which this process sends as @self. */
int MPIDI_ZC_foreign_path_of_self(uint64_t self);

/* Returns the id of the process. */
uint64_t MPIDI_ZC_foreign_path_id(const struct MPIDI_ZC_foreign *foreign);

/* Returns the numbers of the messages of this process, and of the other (0: none is known). */
uint64_t MPIDI_ZC_foreign_path_self(const struct MPIDI_ZC_foreign *foreign);
uint64_t MPIDI_ZC_foreign_path_other(const struct MPIDI_ZC_foreign *foreign);

/* Returns the process in CH4's address vector. NULL: CH4 does not know it (any more). */
MPIDI_ZC_addr_t *MPIDI_ZC_foreign_path_peer(const struct MPIDI_ZC_foreign *foreign);

/* Is the process lost, or have both sides parted? Then nothing more is sent on the path, nor comes. */
bool MPIDI_ZC_foreign_path_is_over(const struct MPIDI_ZC_foreign *foreign);

/* Is the connection of the first VCI to the process lost? Then this one, of another VCI, is going to be. */
bool MPIDI_ZC_foreign_path_first_is_lost(const struct MPIDI_ZC_foreign *foreign);

/* Has CH4 given it up, and does this side send nothing over it any more? */
bool MPIDI_ZC_foreign_path_is_given_up(const struct MPIDI_ZC_foreign *foreign);

/* Have all messages up to the number @next arrived? */
bool MPIDI_ZC_foreign_path_has_all(const struct MPIDI_ZC_foreign *foreign, uint32_t next);

/* Returns the endpoint, or NULL. */
ucp_ep_h MPIDI_ZC_foreign_path_endpoint(const struct MPIDI_ZC_foreign *foreign);

/* The process has another @address, @length bytes long. */
int MPIDI_ZC_foreign_path_readdress(struct MPIDI_ZC_foreign *foreign, const char *address,
                                    size_t length);

/* Makes an endpoint to that, which the connection has from here on. The last one has been closed. *@ep:
 * NULL if the process is lost, which is no error. */
int MPIDI_ZC_foreign_path_connect(struct MPIDI_ZC_foreign *foreign, ucp_ep_h * ep);

/* The endpoint has been closed, or destroyed with the worker; the lane has none, either. */
void MPIDI_ZC_foreign_path_forget_endpoint(struct MPIDI_ZC_foreign *foreign);

/* The process has ended, or takes this one for lost. It may free the connection. */
void MPIDI_ZC_foreign_path_lose(struct MPIDI_ZC_foreign *foreign);

/* UCX has refused to send something, because of @status. */
void MPIDI_ZC_foreign_path_refused(struct MPIDI_ZC_foreign *foreign, ucs_status_t status);

/* A FIN (zc_disconnect.h) is neither sent nor answered while the path is not open, or something that has
 * come on it is not handled: notes that one waits. Any thread may call this, in callbacks, too. */
void MPIDI_ZC_foreign_path_postpone(void);

/* Does one? Any thread may call this. */
bool MPIDI_ZC_foreign_path_waits(void);

/* Sends and answers those whose paths are open. All that has come on paths has been handled. */
void MPIDI_ZC_foreign_path_settle(void);

/* Returns what keeps this process from leaving, or NULL. *@passes: that ends without the program's
 * doing. */
const char *MPIDI_ZC_foreign_path_obstacle(bool *passes);

#endif /* ZC_FOREIGN_PATH_H_INCLUDED */
