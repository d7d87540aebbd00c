/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ZC_TEST_UCP_H
#define ZC_TEST_UCP_H

/* What zc_path.c and its neighbours use of UCX. rank.c passes it on to path_test.cpp. */

#include <stddef.h>
#include <stdint.h>

typedef enum {
    UCS_OK = 0,
    UCS_INPROGRESS = 1,
    UCS_ERR_NO_MEMORY = -4,
    UCS_ERR_UNREACHABLE = -6,
    UCS_ERR_REJECTED = -24,
    UCS_ERR_NOT_CONNECTED = -15,
    UCS_ERR_CANCELED = -16,
    UCS_ERR_CONNECTION_RESET = -25,
    UCS_ERR_ENDPOINT_TIMEOUT = -80,
    UCS_ERR_LAST = -100,
} ucs_status_t;

typedef void *ucs_status_ptr_t;

#define UCS_PTR_IS_ERR(ptr) ((uintptr_t)(ptr) >= (uintptr_t)(intptr_t)UCS_ERR_LAST)
#define UCS_PTR_IS_PTR(ptr) ((uintptr_t)(ptr)-1 < (uintptr_t)(intptr_t)UCS_ERR_LAST - 1)
#define UCS_PTR_STATUS(ptr) ((ucs_status_t)(intptr_t)(ptr))
#define UCS_STATUS_PTR(status) ((void *)(intptr_t)(status))

typedef struct zc_test_endpoint *ucp_ep_h;
typedef struct zc_test_worker *ucp_worker_h;
typedef struct zc_test_context *ucp_context_h;
typedef struct zc_test_rkey *ucp_rkey_h;
typedef struct zc_test_mem *ucp_mem_h;
typedef struct zc_test_address ucp_address_t;
typedef void (*ucp_send_nbx_callback_t)(void *request, ucs_status_t status, void *user_data);
typedef void (*ucp_err_handler_cb_t)(void *arg, ucp_ep_h ep, ucs_status_t status);

enum {
    UCP_OP_ATTR_FIELD_CALLBACK = 1,
    UCP_OP_ATTR_FIELD_USER_DATA = 2,
    UCP_OP_ATTR_FIELD_FLAGS = 4,
    UCP_AM_SEND_FLAG_EAGER = 8,
    UCP_AM_SEND_FLAG_RNDV = 16,
    UCP_EP_CLOSE_FLAG_FORCE = 1,
    UCP_EP_PARAM_FIELD_REMOTE_ADDRESS = 1,
    UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE = 2,
    UCP_EP_PARAM_FIELD_ERR_HANDLER = 4,
};

typedef enum { UCP_ERR_HANDLING_MODE_NONE, UCP_ERR_HANDLING_MODE_PEER } ucp_err_handling_mode_t;

typedef struct {
    uint32_t op_attr_mask;
    uint32_t flags;
    struct {
        ucp_send_nbx_callback_t send;
    } cb;
    void *user_data;
} ucp_request_param_t;

typedef struct {
    uint64_t field_mask;
    const ucp_address_t *address;
    ucp_err_handling_mode_t err_mode;
    struct {
        ucp_err_handler_cb_t cb;
        void *arg;
    } err_handler;
} ucp_ep_params_t;

typedef struct {
    uint64_t recv_attr;
} ucp_am_recv_param_t;

const char *ucs_status_string(ucs_status_t status);
ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep);
ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t *param);
ucs_status_ptr_t ucp_ep_flush_nbx(ucp_ep_h ep, const ucp_request_param_t *param);
ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                 const void *data, size_t length, const ucp_request_param_t *param);
ucs_status_ptr_t ucp_worker_flush_nbx(ucp_worker_h worker, const ucp_request_param_t *param);
ucs_status_t ucp_request_check_status(void *request);
void ucp_request_free(void *request);
void ucp_rkey_buffer_release(void *packed);
void ucp_rkey_destroy(ucp_rkey_h key);

#endif
