/* SPDX-License-Identifier: BSD-3-Clause */
/* The component that Open MPI loads: mca_coll_ulc.so. It tells the other processes whether an
 * engine answers here, joins the job once all have said so, and offers a module for each
 * communicator of the world's processes.
 *
 *   open        before the exchange of all processes' data: endpoint, card published
 *   init_query  after it: all cards read, the job begun; the engines form it meanwhile
 *   comm_query  a module for intra-communicators of 2 and more ranks of this world
 *   close       the job is left
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/mpi/openmpi/glue.h"

#include <ompi/runtime/mpiruntime.h>
#include <opal/runtime/opal_progress.h>
#if OMPI_MAJOR_VERSION >= 5
#include <ompi/runtime/ompi_rte.h>
#include <opal/mca/pmix/pmix-internal.h>
#define TO_ALL PMIX_GLOBAL
#define COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
#else
#include <ompi/mca/rte/rte.h>
#include <opal/mca/pmix/pmix.h>
#define TO_ALL OPAL_PMIX_GLOBAL
#define COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0
#endif

#define CARD_KEY "ulc.coll.card"
#define RANKS_MAX 65534

static int priority = 95; /* above all that ship with Open MPI */
static ulc_mpi_card own_card;
static int is_open;
static int is_joining;

static int ulc_register(void) {
    (void)mca_base_component_var_register(
        &mca_coll_ulc_component.collm_version, "priority",
        "Priority of the ulc component; 0 leaves all collectives to the others",
        MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_ALL_EQ, &priority);
    return OMPI_SUCCESS;
}

/* True if the component fits the Open MPI of that version: from 5.0 on, components changed between
 * releases under one number of their interface, so it fits one release alone. */
static int fits(const char* version) {
    unsigned major = 0;
    unsigned minor = 0;
    if (OMPI_MAJOR_VERSION >= 5) return strcmp(version, ULC_OPEN_MPI) == 0;
    return sscanf(version, "%u.%u", &major, &minor) == 2 && major == OMPI_MAJOR_VERSION &&
           minor == OMPI_MINOR_VERSION;
}

/* True if this process's Open MPI is one that the component was built for. Else the reason is left
 * for the account. */
static int is_of_this_open_mpi(void) {
    char said[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    char version[32] = "unknown";
    char why[192];
    int length = 0;
    /* "Open MPI v5.0.7, package: ..." */
    if (PMPI_Get_library_version(said, &length) == MPI_SUCCESS &&
        sscanf(said, "Open MPI v%31[^, ]", version) == 1 && fits(version))
        return 1;
    snprintf(why, sizeof why,
             "this Open MPI has version %s, and mca_coll_ulc.so was built for " ULC_OPEN_MPI
             "; build ULC again on this machine",
             version);
    ulc_mpi_decline(why);
    return 0;
}

static int ulc_open_component(void) {
    int status = OMPI_SUCCESS;
    if (!is_of_this_open_mpi()) return OMPI_ERR_NOT_AVAILABLE;
    if (priority <= 0 || ompi_process_info.num_procs < 2) return OMPI_ERR_NOT_AVAILABLE;
    is_open = ulc_mpi_open(&mca_coll_ulc_hooks, &own_card) == 0;
    /* A card that says no spares the others the question whether we have one at all. */
    OPAL_MODEX_SEND_STRING(status, TO_ALL, CARD_KEY, &own_card, sizeof own_card);
    return status == OPAL_SUCCESS ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

static int ulc_close_component(void) {
    if (is_joining) opal_progress_unregister(ulc_mpi_progress);
    is_joining = 0;
    ulc_mpi_close(OMPI_PROC_MY_NAME->vpid);
    return OMPI_SUCCESS;
}

static void read_card(opal_vpid_t rank, ulc_mpi_card* card) {
    opal_process_name_t name = *OMPI_PROC_MY_NAME;
    void* bytes = NULL;
    size_t size = 0;
    int status = OPAL_SUCCESS;
    name.vpid = rank;
    memset(card, 0, sizeof *card);
    OPAL_MODEX_RECV_STRING(status, CARD_KEY, &name, &bytes, &size);
    if (status == OPAL_SUCCESS && size == sizeof *card) memcpy(card, bytes, sizeof *card);
    free(bytes);
}

static int ulc_init_query(bool enable_progress_threads, bool enable_mpi_threads) {
    const uint32_t size = ompi_process_info.num_procs;
    ulc_mpi_card* cards = NULL;
    char job[64];
    (void)enable_progress_threads;
    (void)enable_mpi_threads;
    if (!is_open || size > RANKS_MAX) return OMPI_ERR_NOT_AVAILABLE;
    cards = calloc(size, sizeof *cards);
    if (cards == NULL) return OMPI_ERR_OUT_OF_RESOURCE;
    for (uint32_t rank = 0; rank < size; ++rank)
        read_card(rank, &cards[rank]);
    snprintf(job, sizeof job, "ompi-%08x", (unsigned)OMPI_PROC_MY_NAME->jobid);
    is_joining = ulc_mpi_join(job, OMPI_PROC_MY_NAME->vpid, size, cards) == 0;
    free(cards);
    if (!is_joining) return OMPI_ERR_NOT_AVAILABLE;
    opal_progress_register(ulc_mpi_progress);
    return OMPI_SUCCESS;
}

/* The ranks of a communicator's members in the world; NULL: not all are of this world. */
static uint16_t* world_ranks(ompi_communicator_t* comm, int size, int* whole) {
    uint16_t* ranks = malloc((size_t)size * sizeof *ranks);
    if (ranks == NULL) return NULL;
    *whole = comm == &ompi_mpi_comm_world.comm;
    for (int i = 0; i < size; ++i) {
        const opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, i);
        if (name.jobid != OMPI_PROC_MY_NAME->jobid || name.vpid >= ompi_process_info.num_procs) {
            free(ranks);
            return NULL;
        }
        ranks[i] = (uint16_t)name.vpid;
    }
    return ranks;
}

/* The same at all members, and of no other communicator that exists. */
static uint64_t key_of(const ompi_communicator_t* comm) {
#if OMPI_MAJOR_VERSION >= 5
    return comm->c_contextid.cid_base * UINT64_C(0x9E3779B97F4A7C15) +
           comm->c_contextid.cid_sub.u64;
#else
    return comm->c_contextid;
#endif
}

static int ulc_module_enable(mca_coll_base_module_t* base, ompi_communicator_t* comm) {
    mca_coll_ulc_module_t* module = (mca_coll_ulc_module_t*)base;
    mca_coll_base_comm_coll_t* table = comm->c_coll;
    /* Without a function for each from before there is nothing to fall back to. */
#define HAS(op) \
    if (table->coll_##op == NULL || table->coll_##op##_module == NULL) return OMPI_ERROR;
    ULC_MPI_CAUGHT(HAS)
#undef HAS
    module->before = *table;
#define HOLD(op) OBJ_RETAIN(table->coll_##op##_module);
    ULC_MPI_CAUGHT(HOLD)
#undef HOLD
#define HOLD_IF_THERE(op)                                              \
    if (table->coll_##op == NULL || table->coll_##op##_module == NULL) \
        base->coll_##op = NULL;                                        \
    else                                                               \
        OBJ_RETAIN(table->coll_##op##_module);
    ULC_MPI_CAUGHT_IF_THERE(HOLD_IF_THERE)
#undef HOLD_IF_THERE
    module->communicator = comm;
    return OMPI_SUCCESS;
}

static mca_coll_base_module_t* ulc_comm_query(ompi_communicator_t* comm, int* level) {
    const int size = ompi_comm_size(comm);
    int whole = 0;
    if (!is_joining || OMPI_COMM_IS_INTER(comm) || size < 2 || size > RANKS_MAX) return NULL;
    uint16_t* ranks = world_ranks(comm, size, &whole);
    if (ranks == NULL) return NULL;
    mca_coll_ulc_module_t* module = OBJ_NEW(mca_coll_ulc_module_t);
    if (module != NULL) module->comm = ulc_mpi_comm_new(ranks, (uint16_t)size, whole, key_of(comm));
    free(ranks);
    if (module == NULL) return NULL;
    if (module->comm == NULL) {
        OBJ_RELEASE(module);
        return NULL;
    }
    module->super.coll_module_enable = ulc_module_enable;
    mca_coll_ulc_set_functions(&module->super);
    *level = priority;
    return &module->super;
}

static void construct(mca_coll_ulc_module_t* module) {
    module->comm = NULL;
    module->communicator = NULL;
    memset(&module->before, 0, sizeof module->before);
}

/* Not in coll_module_disable: that is called once for each function. */
static void destruct(mca_coll_ulc_module_t* module) {
    const int orderly = ompi_mpi_state < OMPI_MPI_STATE_FINALIZE_STARTED;
    ulc_mpi_comm_free(module->comm, orderly);
    if (module->communicator == NULL) return;
#define RELEASE(op) OBJ_RELEASE(module->before.coll_##op##_module);
    ULC_MPI_CAUGHT(RELEASE)
#undef RELEASE
#define RELEASE_IF_HELD(op) \
    if (module->super.coll_##op != NULL) OBJ_RELEASE(module->before.coll_##op##_module);
    ULC_MPI_CAUGHT_IF_THERE(RELEASE_IF_HELD)
#undef RELEASE_IF_HELD
}

OBJ_CLASS_INSTANCE(mca_coll_ulc_module_t, mca_coll_base_module_t, construct, destruct);

const mca_coll_base_component_t mca_coll_ulc_component = {
    .collm_version =
        {
            COLL_VERSION,
            .mca_component_name = "ulc",
            MCA_BASE_MAKE_VERSION(component, 0, 1, 0),
            .mca_open_component = ulc_open_component,
            .mca_close_component = ulc_close_component,
            .mca_register_component_params = ulc_register,
        },
    .collm_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .collm_init_query = ulc_init_query,
    .collm_comm_query = ulc_comm_query,
};
