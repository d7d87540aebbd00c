/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_WIRE_H_INCLUDED
#define ZC_WIRE_H_INCLUDED

/* This file has the format of everything that processes of zc send to each other. Each message is
 * an active message of UCP, which has a user header and a payload, one of which may be empty:
 *
 *   id        VCI   user header                            payload
 *   MESSAGE   all   am_header (24), CH4's header           data, which may only be announced
 *   EAGER     all   none                                   eager_header (24), data     (short)
 *                   eager_header (24)                      data                        (longer)
 *   BUNDLE    all   none                                   bundle_header (16), and for each message
 *                                                          bundle_part (12), data, padding to 4
 *   CREDIT    all   none                                   credit (16)
 *   OFFER     all   am_header (24), CH4's header           offer_number (4)
 *   PULL      all   pull (24)                              none
 *   DATA      all   data (16)                              data, which is announced
 *   CHANNEL   all   handshake (176)                        none
 *   TEARDOWN  0     round (4)                              none
 *   REPORT    0     none                                   MPIDI_ZC_report_t: zc_stats.h
 *   DYNAMIC   0     port_tag (4)                           CH4's message
 *   HELLO     all   none                                   hello (24), upid
 *   HOST      all   none                                   host (16), mask of processors, upid
 *   FIN       all   none                                   fin_message (32)
 *   PATH      all   path_message (64)                      PAUSE, PARKS: path_numbers (12) of each VCI,
 *                                                          or to another world, which PATH comes from on
 *                                                          all VCIs, of its own; PAUSE to another world:
 *                                                          lives (16) and addresses of a host, or
 *                                                          nothing;
 *                                                          REBIND, INTRODUCE: addresses of all VCIs
 *                                                          (zc_address_list.h); KEY: the key
 *
 * A mask of processors is an array of words of 64 bits (zc_processors.h). CH4's headers are those
 * of MPICH's mpidig_am.h. Other ways carry the rest:
 *
 *   table of the process manager, in MPI_Init     entry (16), mask of processors, upid,
 *                                                 UCP's address over the network
 *   port names, CH4's exchange between groups     upid (16 and the address)
 *   MPI_Allgather, when a window is made          win_member (24)
 *   MPI_Allgather, at the end of MPI_Init         addresses of UCP workers: zc_addresses.c
 *   MPI_Allgather, when a communicator across     upid, with the address of one VCI
 *   worlds is made
 *   frames of libzclane, which has their header   data; the frame's id is a pull_name. One without
 *                                                 data, of id 0, confirms a channel: zc_handshake.h
 *
 * Byte order and layout are those of the machine, since a job runs on machines of one kind: CH4's
 * headers demand that as well. The structures are not packed; `unused` names what the compiler
 * would leave unnamed behind their members. A sender aligns a structure as usual, but UCP promises
 * a receiver no alignment, so handlers copy a structure before they read it.
 *
 * The processes of one world run the same build of MPICH, and formats may change between builds.
 *
 * CH4's objects embed structures of this file (zc_pre.h), so it needs no type of MPICH. */

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Identifiers of active messages, and the files that describe the exchange. */
enum {
    MPIDI_ZC_AM_MESSAGE,        /* zc_am.h: every message of CH4 that has no id of its own */
    MPIDI_ZC_AM_EAGER,          /* zc_eager.h: an eager send */
    MPIDI_ZC_AM_BUNDLE,         /* zc_bundle.h: several short sends */
    MPIDI_ZC_AM_CREDIT,         /* zc_flow.h: credit that no other packet carries */
    MPIDI_ZC_AM_OFFER,          /* zc_channel.h, and the next two: an announced message */
    MPIDI_ZC_AM_PULL,
    MPIDI_ZC_AM_DATA,
    MPIDI_ZC_AM_CHANNEL,        /* zc_handshake.h: how a channel is opened */
    MPIDI_ZC_AM_TEARDOWN,       /* zc_teardown.h: the barrier of finalize */
    MPIDI_ZC_AM_REPORT,         /* zc_stats.h: statistics, to rank 0 */
    MPIDI_ZC_AM_DYNAMIC,        /* zc_spawn.c: a message through a port */
    MPIDI_ZC_AM_HELLO,          /* zc_sender.h: the first over a connection to another world */
    MPIDI_ZC_AM_HOST,           /* zc_shm_upgrade.h: processors and address, on one machine */
    MPIDI_ZC_AM_FIN,            /* zc_disconnect.h: the end of a connection */
    MPIDI_ZC_AM_PATH,           /* zc_path.h: a rank leaves, or comes back */
};

#define MPIDI_ZC_WIRE_FORMAT(type, bytes, alignment)                           \
    _Static_assert(sizeof(type) == (bytes) && _Alignof(type) == (alignment),   \
                   "the wire format of " #type " has changed")

/* ---- messages of one world ---- */

/* A `sender` in the messages below is the sender's rank in the MPI_COMM_WORLD of both processes, or
 * this bit and the random number that the sender has drawn for a connection: zc_sender.h. The four
 * bits below it are the number of the connection's VCI, the same on both sides. */
#define MPIDI_ZC_FOREIGN (1ULL << 63)
#define MPIDI_ZC_FOREIGN_VCI_SHIFT 59
#define MPIDI_ZC_FOREIGN_VCI_MASK (15ULL << MPIDI_ZC_FOREIGN_VCI_SHIFT)

/* Returns the VCI of the connection with that number. */
static inline int MPIDI_ZC_foreign_number_vci(uint64_t number)
{
    return (int) ((number & MPIDI_ZC_FOREIGN_VCI_MASK) >> MPIDI_ZC_FOREIGN_VCI_SHIFT);
}

/* MESSAGE and OFFER. CH4's header follows.
 *
 * `sequence` numbers the messages from one VCI to another, with those of EAGER and BUNDLE. UCP
 * keeps the order of messages of one fragment only: it delivers a message that it splits when the
 * last fragment has arrived. */
typedef struct {
    uint32_t sequence;
    uint8_t handler_id;         /* CH4's */
    uint8_t shares;             /* 1: announced over the connection of all other messages, and not over
                                 * one for bulk: zc_peer.h */
    uint8_t src_vci;
    uint8_t dst_vci;
    uint64_t sender;
    uint64_t data_size;
} MPIDI_ZC_am_header_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_am_header_t, 24, 8);

/* A packet that is sent in any case returns credit in multiples of this. */
#define MPIDI_ZC_CREDIT_UNIT 4096

/* EAGER. What am_header and CH4's header of a send say, for a send without options, in 24 bytes
 * instead of both: a slot of UCX's queue in shared memory takes some 100 bytes, and a message that
 * fits one is twice as fast as a longer one. */
typedef struct {
    uint64_t sender;
    uint32_t sequence;
    int32_t src_rank;
    int32_t tag;
    uint16_t context_id;
    uint8_t error_bits;
    uint8_t credit;             /* in MPIDI_ZC_CREDIT_UNIT: zc_flow.h */
} MPIDI_ZC_eager_header_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_eager_header_t, 24, 8);

/* The most data of a short packet. A packet gains by being short only if it fits what the transport
 * sends at once: a slot of UCX's queue in shared memory, or a packet over TCP. */
#define MPIDI_ZC_SHORT_MAX_LOCAL 64
#define MPIDI_ZC_SHORT_MAX 2048

typedef struct {
    MPIDI_ZC_eager_header_t header;
    char data[MPIDI_ZC_SHORT_MAX];
} MPIDI_ZC_short_packet_t;

/* BUNDLE: what its messages have in common, and what each has of its own. */
typedef struct {
    uint64_t sender;
    uint32_t sequence;          /* of the first message */
    uint8_t credit;             /* as in MPIDI_ZC_eager_header_t */
    uint8_t unused[3];
} MPIDI_ZC_bundle_header_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_bundle_header_t, 16, 8);

typedef struct {
    int32_t src_rank;
    int32_t tag;
    uint16_t context_id;
    uint16_t bytes;             /* of the data, without the padding */
} MPIDI_ZC_bundle_part_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_bundle_part_t, 12, 4);

/* The bytes that a part, its data of @bytes and the padding take. */
static inline size_t MPIDI_ZC_bundle_part_length(size_t bytes)
{
    return sizeof(MPIDI_ZC_bundle_part_t) + ((bytes + 3) & ~(size_t) 3);
}

/* CREDIT. */
typedef struct {
    /* The sender of this packet, which receives the messages that the credit is for. Between two
     * worlds, where a process has a number for each direction, the number of those messages. */
    uint64_t sender;
    int32_t bytes;
    uint32_t unused;
} MPIDI_ZC_credit_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_credit_t, 16, 8);

/* ---- channels ---- */

/* OFFER: the sender's name for the message. */
typedef uint32_t MPIDI_ZC_offer_number_t;

/* PULL and DATA, and the id of a frame: the receiver's name for the message, which is not 0. */
typedef uint64_t MPIDI_ZC_pull_name_t;

typedef struct {
    uint64_t sender;            /* of the DATA */
    MPIDI_ZC_pull_name_t name;
} MPIDI_ZC_data_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_data_t, 16, 8);

/* PULL: how the receiver wants the data of an offer. */
enum {
    MPIDI_ZC_PULL_FRAME,        /* as a frame of the channel */
    MPIDI_ZC_PULL_DATA,         /* as DATA, by UCP */
    MPIDI_ZC_PULL_NOTHING,      /* not at all */
};

typedef struct {
    uint64_t sender;            /* of the PULL */
    MPIDI_ZC_pull_name_t name;
    MPIDI_ZC_offer_number_t number;
    uint32_t how;
} MPIDI_ZC_pull_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_pull_t, 24, 8);

/* CHANNEL. */
enum {
    MPIDI_ZC_HANDSHAKE_ASK,
    MPIDI_ZC_HANDSHAKE_LISTEN,  /* with the address to connect to, and the secret to show there */
    MPIDI_ZC_HANDSHAKE_REFUSE,
};

#define MPIDI_ZC_SECRET_BYTES 32

typedef struct {
    uint32_t kind;
    uint32_t address_length;    /* LISTEN */
    uint64_t sender;
    unsigned char secret[MPIDI_ZC_SECRET_BYTES];        /* LISTEN */
    struct sockaddr_storage address;    /* LISTEN */
} MPIDI_ZC_handshake_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_handshake_t, 176, 8);

/* ---- ranks that leave and come back ---- */

/* PATH, in zc_path.h. Of two messages that could not be sent at once, the first here is sent first. */
typedef enum {
    MPIDI_ZC_TELL_REBIND,       /* the sender is back; with its addresses */
    MPIDI_ZC_TELL_BOUND,        /* the sender has an endpoint to the other's new address */
    MPIDI_ZC_TELL_DONE,         /* the sender is bound by all ranks, and needs its anchor no more */
    MPIDI_ZC_TELL_PARKS,        /* what the sender sends waits from here on, too */
    MPIDI_ZC_TELL_FETCHED,      /* the leader has all messages of the other */
    MPIDI_ZC_TELL_HEARD,        /* the other has all messages of the leader */
    MPIDI_ZC_TELL_KNOWS,        /* the sender has had PAUSE, though it leads, or did not park for it */
    MPIDI_ZC_TELL_QUIET,        /* nothing of the leader's is under way any more */
    MPIDI_ZC_TELL_REFUSE,       /* the sender does not let the other leave */
    MPIDI_ZC_TELL_RESUME,       /* the sender stays */
    MPIDI_ZC_TELL_PAUSE,        /* the sender leaves: what it sends waits from here on */
    MPIDI_ZC_TELL_ASK,          /* is the receiver its anchor? */
    MPIDI_ZC_TELL_STAYS,        /* the sender is */
    MPIDI_ZC_TELL_GOES,         /* it is not, since it leaves itself */
    /* These are not kept to be sent later: */
    MPIDI_ZC_TELL_STALE,        /* the sender knows of a later incarnation, or does not expect one */
    MPIDI_ZC_TELL_INTRODUCE,    /* a third rank is there; with its addresses, if it has ever left */
    MPIDI_ZC_TELL_WANTS,        /* the sender wants the key to the receiver's memory of a window */
    MPIDI_ZC_TELL_KEY,          /* that key, packed; without data: only active messages get there */
} MPIDI_ZC_tell_t;

typedef enum {
    MPIDI_ZC_REFUSES_NOT,
    MPIDI_ZC_REFUSES_FINALIZE,  /* the rank is in MPI_Finalize */
    MPIDI_ZC_REFUSES_BINDS,     /* it has come back, and waits for one that is away */
    MPIDI_ZC_REFUSES_MEMORY,    /* it has none for announced messages */
    MPIDI_ZC_REFUSES_CONNECTS,  /* it gives addresses to another world */
    MPIDI_ZC_REFUSES_LEAVES,    /* it leaves itself, and is of another world */
    MPIDI_ZC_REFUSES_LOST,      /* STALE: it is of another world, and has taken the receiver for lost */
} MPIDI_ZC_refusal_t;

typedef struct {
    uint64_t sender;            /* rank; of another world, the number of its messages */
    uint32_t receiver;          /* rank; of another world, the lower half of its id */
    uint32_t kind;
    uint32_t round;             /* PAUSE, ASK, RESUME: of the sender's attempts to leave; REFUSE, KNOWS,
                                 * STAYS, GOES: of the receiver's; PARKS to QUIET: of the leader's, when it
                                 * began to lead */
    uint32_t number;            /* WANTS: of the window, by the sender's count; KEY: by the receiver's */
    uint32_t incarnation;       /* REBIND, KEY: of the sender; BOUND, STALE: of the receiver; INTRODUCE: of
                                 * the subject */
    uint32_t leader_round;      /* PAUSE: of the negotiation that there is on this path; 0: the sender
                                 * begins one */
    uint32_t leads;             /* PAUSE: 1: the sender leads that one */
    uint32_t known_round;       /* RESUME: of the receiver's attempt that the sender knows of, or 0 */
    uint32_t refusal;           /* REFUSE, STALE */
    uint32_t subject;           /* INTRODUCE: the third rank; REBIND to another world: the lower half of the
                                 * sender's id */
    uint64_t window;            /* WANTS: CH4's number of it, which all its processes know it by */
    uint64_t connection;        /* STALE, REFUSE to another world: the number of the receiver's messages, since
                                 * the sender may have no connection any more, or has given it up */
} MPIDI_ZC_path_message_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_path_message_t, 64, 8);

/* PAUSE and PARKS, of a VCI. */
typedef struct {
    uint32_t messages;          /* number of the sender's next message */
    uint32_t credits;           /* packets of CREDIT that it has sent, which have no numbers; wraps */
    uint32_t connected;         /* 1: it has an endpoint to the receiver */
} MPIDI_ZC_path_numbers_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_path_numbers_t, 12, 4);

/* PAUSE to another world, behind the numbers: where a connection lasts as long as the sender lives
 * (zc_liveness.h). The list of its holder's addresses follows (zc_hosts.h). */
typedef struct {
    uint64_t token;             /* as the holder sends it: both are of one byte order */
    uint16_t port;              /* of TCP, as the network has it */
    uint16_t silence;           /* seconds without a sign of the holder's host, after which it is gone */
    uint8_t unused[4];
} MPIDI_ZC_lives_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_lives_t, 16, 8);

/* ---- windows, and the end of a world ---- */

/* What each process of a window sends to the others. */
typedef struct {
    uint64_t base;
    int32_t disp_unit;
    int32_t key_bytes;          /* of its packed key; 0: only active messages reach its memory */
    uint8_t atomics;            /* 1: this process wants UCX's atomic operations */
    uint8_t unused[3];
    uint32_t incarnation;       /* that the key is of: zc_path.h */
} MPIDI_ZC_win_member_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_win_member_t, 24, 8);

/* TEARDOWN: a round of the barrier, or that a rank has died. */
typedef uint32_t MPIDI_ZC_round_t;
#define MPIDI_ZC_ROUND_DEATH UINT32_MAX

/* ---- identities and addresses ---- */

/* The identity and the address of a process, which CH4 calls a upid. Processes of one world have
 * each other's whole address. Other worlds get the part of it for the network, since a connection to
 * another world begins there (zc_shm_upgrade.h). A table of several has zeros behind the shorter
 * ones. */
typedef struct MPIDI_ZC_upid {
    uint64_t id;                /* random, without MPIDI_ZC_FOREIGN */
    uint64_t host;              /* the same for processes that can share memory; the upper half is
                                 * the same for those under one kernel */
    char address[];             /* of UCP's worker */
} MPIDI_ZC_upid_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_upid_t, 16, 8);

/* What the name of a port has in place of a upid that is too long for it (zc_abridged.h). One or
 * more addresses of the process's host follow, each with its length in a byte before it: 4 bytes of
 * IPv4, or 16 of IPv6, as the network has them. */
typedef struct {
    uint64_t id;                /* with MPIDI_ZC_ABRIDGED */
    uint64_t host;
    uint16_t port;              /* of TCP, as the network has it */
    uint8_t unused[6];
} MPIDI_ZC_abridged_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_abridged_t, 24, 8);
#define MPIDI_ZC_ABRIDGED MPIDI_ZC_FOREIGN      /* in an id, which has no such bit of its own */

/* WHOLE, by TCP. The upid follows, with the address over the network. */
typedef struct {
    uint64_t magic;             /* MPIDI_ZC_WHOLE */
    uint64_t length;            /* of the upid */
} MPIDI_ZC_whole_t;
#define MPIDI_ZC_WHOLE 0x7a6320757069640aULL
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_whole_t, 16, 8);

/* What a process puts into the table of the process manager. Its mask of processors, its upid and
 * its address over the network follow. */
typedef struct {
    uint32_t upid_length;
    uint16_t nr_vcis;
    uint16_t mask_words;
    int32_t window;             /* that it gives each sender: zc_flow.h */
    uint32_t net_length;        /* of its address over the network */
} MPIDI_ZC_entry_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_entry_t, 16, 4);

/* ---- messages between worlds ---- */

/* DYNAMIC: the tag that CH4 has given the message. */
typedef int32_t MPIDI_ZC_port_tag_t;

/* Worlds may have been started with different builds. It grows with each change of a format here,
 * and is more than a length that earlier builds had in its place. */
#define MPIDI_ZC_WIRE_VERSION ((uint64_t) 1 << 32 | 5)

/* HELLO. The upid of the process that sends follows, with its address over the network. */
typedef struct {
    uint64_t number;            /* its `sender` on this connection */
    uint64_t version;           /* MPIDI_ZC_WIRE_VERSION of its build */
    uint32_t detaches;          /* 1: MPIR_CVAR_CH4_ZC_DETACH, so it knows of processes that leave */
    uint32_t unused;
} MPIDI_ZC_hello_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_hello_t, 24, 8);

/* HOST. The mask of processors and the upid, with the whole address, follow. */
typedef struct {
    uint64_t number;            /* as in HELLO */
    uint32_t mask_words;
    uint32_t upid_length;       /* 0: the process does not offer shared memory */
    int64_t pid;                /* among the processes of its host */
} MPIDI_ZC_host_message_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_host_message_t, 24, 8);

/* FIN. */
typedef enum {
    MPIDI_ZC_FIN_PLAIN,         /* over the network */
    MPIDI_ZC_FIN_FINALIZE,      /* the same; the sender is in MPI_Finalize, and waits for FIN_ACK */
    MPIDI_ZC_FIN_ACK,
    MPIDI_ZC_FIN_SHM,           /* over shared memory */
    MPIDI_ZC_FIN_KINDS,
} MPIDI_ZC_fin_kind_t;

typedef struct {
    uint64_t from;              /* id of the process that sends */
    uint64_t number;            /* the `sender` of messages of which no more will follow */
    uint64_t acked;             /* FIN_ACK: the number in the FIN that has arrived */
    uint8_t kind;
    uint8_t has_shm;            /* 1: a FIN_SHM follows over shared memory */
    uint8_t unused[6];
} MPIDI_ZC_fin_message_t;
MPIDI_ZC_WIRE_FORMAT(MPIDI_ZC_fin_message_t, 32, 8);

#endif /* ZC_WIRE_H_INCLUDED */
