/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpidimpl.h>
#include "zc_spawned.h"
#include "zc_impl.h"
#include "zc_order.h"

#define HOLDER "ZC_HOLD_SPAWNED"
#define FOLDERS "path"

static const char *holder;      /* its words */

/* One of the commands, with what is owned. */
typedef struct {
    void *words;
    MPIR_Info *info;            /* a list in one piece, of which keys and values are another's */
} held_t;

static const char *folders_in(const MPIR_Info * info)
{
    for (const MPIR_Info * each = info ? info->next : NULL; each; each = each->next) {
        if (strcmp(each->key, FOLDERS) == 0) {
            return each->value;
        }
    }
    return NULL;
}

/* Returns @info without the folders, or NULL: there is no memory. The launcher would look for zc-hold
 * there. */
static MPIR_Info *without_folders(const MPIR_Info * info)
{
    size_t number = 1;
    for (const MPIR_Info * each = info->next; each; each = each->next) {
        number++;
    }
    MPIR_Info *copy = MPL_malloc(number * sizeof(*copy), MPL_MEM_OTHER);
    if (!copy) {
        return NULL;
    }
    copy[0] = *info;
    MPIR_Info *last = &copy[0];
    for (const MPIR_Info * each = info->next; each; each = each->next) {
        if (strcmp(each->key, FOLDERS) != 0) {
            last[1] = *each;
            last->next = &last[1];
            last++;
        }
    }
    last->next = NULL;
    return copy;
}

/* Puts the holder before *@command. False: there is no memory. */
static bool hold(held_t * held, char **command, char ***arguments,
                 MPIR_Info ** info)
{
    const MPIDI_ZC_spawned_t spawned = {
        .holder = holder,
        .folders = folders_in(*info),
        .command = *command,
        .arguments = *arguments,
    };

    if (MPIDI_ZC_spawned_is_held(holder, *command)) {
        return true;
    }
    held->words = MPL_malloc(MPIDI_ZC_spawned_room(&spawned), MPL_MEM_OTHER);
    held->info = spawned.folders ? without_folders(*info) : NULL;
    if (!held->words || (spawned.folders && !held->info)) {
        return false;
    }
    *arguments = MPIDI_ZC_spawned_words(&spawned, held->words, command);
    *info = spawned.folders ? held->info : *info;
    return true;
}

/* As MPIR_pmi_spawn_multiple(). */
static int start(int count, char *commands[], char **argvs[], const int maxprocs[],
                 MPIR_Info * info_ptrs[], int nr_preput, struct MPIR_PMI_KEYVAL *preput, int *errcodes)
{
    int mpi_errno = MPI_SUCCESS;
    held_t *held = NULL;
    char **held_commands = NULL, ***held_argvs = NULL;
    MPIR_Info **held_infos = NULL;

    held = MPL_calloc(count, sizeof(*held), MPL_MEM_OTHER);
    held_commands = MPL_calloc(count, sizeof(*held_commands), MPL_MEM_OTHER);
    held_argvs = MPL_calloc(count, sizeof(*held_argvs), MPL_MEM_OTHER);
    held_infos = MPL_calloc(count, sizeof(*held_infos), MPL_MEM_OTHER);
    MPIR_ERR_CHKANDJUMP(!held || !held_commands || !held_argvs || !held_infos, mpi_errno,
                        MPI_ERR_OTHER, "**nomem");
    for (int i = 0; i < count; i++) {
        held_commands[i] = commands[i];
        held_argvs[i] = argvs ? argvs[i] : NULL;
        held_infos[i] = info_ptrs ? info_ptrs[i] : NULL;
        MPIR_ERR_CHKANDJUMP(!hold(&held[i], &held_commands[i], &held_argvs[i],
                                  &held_infos[i]), mpi_errno, MPI_ERR_OTHER, "**nomem");
    }
    mpi_errno = MPIR_pmi_spawn_multiple(count, held_commands, held_argvs, maxprocs, held_infos,
                                        nr_preput, preput, errcodes);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    for (int i = 0; held && i < count; i++) {
        MPL_free(held[i].words);
        MPL_free(held[i].info);
    }
    MPL_free(held);
    MPL_free(held_commands);
    MPL_free(held_argvs);
    MPL_free(held_infos);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

void MPIDI_ZC_spawned_init(void)
{
    const char *words = getenv(HOLDER);
    if (words && words[0] && MPIDI_ZC_order_is_for_this()) {
        holder = words;         /* the environment is not to be read by several threads */
        MPIDIU_spawn_hook = start;
    }
}
