//! libibverbs and librdmacm, loaded when they are first needed: the program runs where they are not installed.
//!
//! Types, constants and the verbs that the headers define inline come from `rdma-sys`. Its other functions would bind
//! the program to both libraries at its start; here are the same functions by the same names.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::LazyLock;

use libloading::os::unix::Library;
use rdma_sys::*;

use crate::error::VerbsError;
use crate::host::library::{functions, open};

static LIBRARIES: LazyLock<Result<Libraries, libloading::Error>> = LazyLock::new(Libraries::load);

/// Both, which are never unloaded.
struct Libraries {
    verbs: Verbs,
    manager: Manager,
    /// Of verbs and manager.
    files: [Library; 2],
}

impl Libraries {
    fn load() -> Result<Self, libloading::Error> {
        let files = [open("libibverbs.so.1")?, open("librdmacm.so.1")?];
        Ok(Libraries {
            verbs: Verbs::of(&files[0])?,
            manager: Manager::of(&files[1])?,
            files,
        })
    }

    fn get() -> &'static Self {
        let loaded = LIBRARIES.as_ref();
        loaded.expect("load() is called before any function, and has not failed")
    }
}

/// Loads both libraries, if they are not loaded yet. To be called before anything else here.
///
/// # Errors
/// Why one of them cannot be loaded.
pub(crate) fn load() -> Result<(), VerbsError> {
    LIBRARIES.as_ref().map(drop).map_err(VerbsError::not_loaded)
}

/// A function of either library that not every version has.
///
/// # Safety
/// A function of that name must have the type `F`.
pub(crate) unsafe fn optional<F: Copy>(name: &CStr) -> Option<F> {
    let mut files = LIBRARIES.as_ref().ok()?.files.iter();
    files.find_map(|library| {
        // SAFETY: the caller vouches for the type.
        let found = unsafe { library.get::<F>(name.to_bytes_with_nul()) };
        found.ok().map(|function| *function)
    })
}

functions! {
    Verbs of Libraries::get().verbs;
    ibv_ack_async_event(event: *mut ibv_async_event);
    ibv_ack_cq_events(cq: *mut ibv_cq, nevents: c_uint);
    ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd;
    ibv_close_device(context: *mut ibv_context) -> c_int;
    ibv_create_ah(pd: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah;
    ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel;
    ibv_create_cq(context: *mut ibv_context, cqe: c_int, cq_context: *mut c_void, channel: *mut ibv_comp_channel,
        comp_vector: c_int) -> *mut ibv_cq;
    ibv_create_qp(pd: *mut ibv_pd, qp_init_attr: *mut ibv_qp_init_attr) -> *mut ibv_qp;
    ibv_create_srq(pd: *mut ibv_pd, srq_init_attr: *mut ibv_srq_init_attr) -> *mut ibv_srq;
    ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int;
    ibv_dereg_mr(mr: *mut ibv_mr) -> c_int;
    ibv_destroy_ah(ah: *mut ibv_ah) -> c_int;
    ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int;
    ibv_destroy_cq(cq: *mut ibv_cq) -> c_int;
    ibv_destroy_qp(qp: *mut ibv_qp) -> c_int;
    ibv_destroy_srq(srq: *mut ibv_srq) -> c_int;
    ibv_free_device_list(list: *mut *mut ibv_device);
    ibv_get_async_event(context: *mut ibv_context, event: *mut ibv_async_event) -> c_int;
    ibv_get_cq_event(channel: *mut ibv_comp_channel, cq: *mut *mut ibv_cq, cq_context: *mut *mut c_void) -> c_int;
    ibv_get_device_list(num_devices: *mut c_int) -> *mut *mut ibv_device;
    ibv_get_device_name(device: *mut ibv_device) -> *const c_char;
    ibv_modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, attr_mask: c_int) -> c_int;
    ibv_open_device(device: *mut ibv_device) -> *mut ibv_context;
    ibv_query_device(context: *mut ibv_context, device_attr: *mut ibv_device_attr) -> c_int;
    ibv_query_port(context: *mut ibv_context, port_num: u8, port_attr: *mut _compat_ibv_port_attr) -> c_int;
    ibv_query_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, attr_mask: c_int, init_attr: *mut ibv_qp_init_attr) -> c_int;
    ibv_reg_mr(pd: *mut ibv_pd, addr: *mut c_void, length: usize, access: c_int) -> *mut ibv_mr;
    ibv_reg_mr_iova2(pd: *mut ibv_pd, addr: *mut c_void, length: usize, iova: u64, access: c_uint) -> *mut ibv_mr;
    ibv_wc_status_str(status: ibv_wc_status::Type) -> *const c_char;
}

functions! {
    Manager of Libraries::get().manager;
    rdma_accept(id: *mut rdma_cm_id, conn_param: *mut rdma_conn_param) -> c_int;
    rdma_ack_cm_event(event: *mut rdma_cm_event) -> c_int;
    rdma_bind_addr(id: *mut rdma_cm_id, addr: *mut libc::sockaddr) -> c_int;
    rdma_connect(id: *mut rdma_cm_id, conn_param: *mut rdma_conn_param) -> c_int;
    rdma_create_ep(id: *mut *mut rdma_cm_id, res: *mut rdma_addrinfo, pd: *mut ibv_pd,
        qp_init_attr: *mut ibv_qp_init_attr) -> c_int;
    rdma_create_event_channel() -> *mut rdma_event_channel;
    rdma_create_id(channel: *mut rdma_event_channel, id: *mut *mut rdma_cm_id, context: *mut c_void,
        ps: rdma_port_space::Type) -> c_int;
    rdma_create_qp(id: *mut rdma_cm_id, pd: *mut ibv_pd, qp_init_attr: *mut ibv_qp_init_attr) -> c_int;
    rdma_destroy_event_channel(channel: *mut rdma_event_channel);
    rdma_destroy_id(id: *mut rdma_cm_id) -> c_int;
    rdma_destroy_qp(id: *mut rdma_cm_id);
    rdma_disconnect(id: *mut rdma_cm_id) -> c_int;
    rdma_get_cm_event(channel: *mut rdma_event_channel, event: *mut *mut rdma_cm_event) -> c_int;
    rdma_get_src_port(id: *mut rdma_cm_id) -> u16;
    rdma_listen(id: *mut rdma_cm_id, backlog: c_int) -> c_int;
    rdma_migrate_id(id: *mut rdma_cm_id, channel: *mut rdma_event_channel) -> c_int;
    rdma_resolve_addr(id: *mut rdma_cm_id, src_addr: *mut libc::sockaddr, dst_addr: *mut libc::sockaddr,
        timeout_ms: c_int) -> c_int;
    rdma_resolve_route(id: *mut rdma_cm_id, timeout_ms: c_int) -> c_int;
    rdma_set_option(id: *mut rdma_cm_id, level: c_int, optname: c_int, optval: *mut c_void, optlen: usize) -> c_int;
}
