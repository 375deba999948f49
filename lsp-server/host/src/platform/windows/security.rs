//! Users and access lists. A user is written as a SID (`S-1-5-21-…`), and an access list in the
//! security descriptor definition language (SDDL), because both then are texts that Windows itself
//! reads and writes.
#![allow(unsafe_code)]

use super::{check, wide};
use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle};
use std::path::Path;
use std::ptr::null_mut;
use windows_sys::Win32::Foundation::{ERROR_SUCCESS, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    ConvertSecurityDescriptorToStringSecurityDescriptorW, ConvertSidToStringSidW,
    ConvertStringSecurityDescriptorToSecurityDescriptorW, GetNamedSecurityInfoW, GetSecurityInfo,
    SDDL_REVISION_1, SE_FILE_OBJECT, SE_KERNEL_OBJECT, SetNamedSecurityInfoW,
};
use windows_sys::Win32::Security::{
    ACL, DACL_SECURITY_INFORMATION, GetSecurityDescriptorDacl, GetTokenInformation,
    OWNER_SECURITY_INFORMATION, PROTECTED_DACL_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR, PSID,
    SECURITY_ATTRIBUTES, TOKEN_QUERY, TOKEN_USER, TokenUser,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

/// The group of administrators. It owns what an administrator makes in an elevated console.
pub const ADMINISTRATORS: &str = "S-1-5-32-544";

/// How SDDL writes that group, and the system itself. Both can read everything anyway.
const SYSTEM: [&str; 2] = ["BA", "SY"];

/// Memory that Windows has allocated by `LocalAlloc`.
struct Local(*mut c_void);

impl Drop for Local {
    fn drop(&mut self) {
        // SAFETY: Windows allocated it for this process, and nothing points into it any more.
        unsafe { LocalFree(self.0) };
    }
}

/// Who may use an object that is about to be made.
pub struct SecurityDescriptor(Local);

impl SecurityDescriptor {
    /// This user owns it and is the only one who may use it.
    pub fn of_own_user() -> io::Result<SecurityDescriptor> {
        let user = own_user()?;
        SecurityDescriptor::parse(&format!("O:{user}D:P(A;;GA;;;{user})"))
    }

    /// The same for a folder and what will lie in it. Windows itself may read there too, for its
    /// virus scanner.
    pub fn of_own_folder() -> io::Result<SecurityDescriptor> {
        let user = own_user()?;
        SecurityDescriptor::parse(&format!("O:{user}D:P(A;OICI;FA;;;{user})(A;OICI;FA;;;SY)"))
    }

    fn parse(sddl: &str) -> io::Result<SecurityDescriptor> {
        let text: Vec<u16> = sddl.encode_utf16().chain([0]).collect();
        let mut descriptor: PSECURITY_DESCRIPTOR = null_mut();
        // SAFETY: the text ends with a zero, and the pointer that is written to outlives the call.
        check(unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text.as_ptr(),
                SDDL_REVISION_1,
                &mut descriptor,
                null_mut(),
            )
        })?;
        Ok(SecurityDescriptor(Local(descriptor)))
    }

    /// The form in which calls take it. It points into this descriptor.
    pub fn attributes(&self) -> SECURITY_ATTRIBUTES {
        SECURITY_ATTRIBUTES {
            nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
            lpSecurityDescriptor: self.0.0,
            bInheritHandle: 0,
        }
    }

    /// Gives a file or folder this access list in the place of its own and of inherited ones.
    pub fn give_to(&self, path: &Path) -> io::Result<()> {
        let (mut is_present, mut is_default) = (0, 0);
        let mut list: *mut ACL = null_mut();
        // SAFETY: the descriptor is whole, and the places that are written to outlive the call.
        check(unsafe {
            GetSecurityDescriptorDacl(self.0.0, &mut is_present, &mut list, &mut is_default)
        })?;
        let path = wide(path);
        // SAFETY: the path ends with a zero, and the list lies in the descriptor.
        code(unsafe {
            SetNamedSecurityInfoW(
                path.as_ptr(),
                SE_FILE_OBJECT,
                DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION,
                null_mut(),
                null_mut(),
                list,
                null_mut(),
            )
        })
    }
}

/// The result of a call that returns an error's number.
fn code(code: u32) -> io::Result<()> {
    match code {
        ERROR_SUCCESS => Ok(()),
        code => Err(io::Error::from_raw_os_error(code as i32)),
    }
}

/// A text of Windows's that ends with a zero.
///
/// # Safety
/// `text` is such a text, allocated by `LocalAlloc`, and is not used after the call.
unsafe fn take_text(text: *mut u16) -> String {
    let owned = Local(text.cast());
    let mut length = 0;
    // SAFETY: the text has a zero, and no place behind it is read.
    let units = unsafe {
        while *text.add(length) != 0 {
            length += 1;
        }
        std::slice::from_raw_parts(text, length)
    };
    let text = String::from_utf16_lossy(units);
    drop(owned);
    text
}

/// # Safety
/// `sid` points to a whole SID.
unsafe fn sid_text(sid: PSID) -> io::Result<String> {
    let mut text = null_mut();
    // SAFETY: by the caller's promise; the pointer that is written to outlives the call.
    check(unsafe { ConvertSidToStringSidW(sid, &mut text) })?;
    // SAFETY: the call has allocated the text.
    Ok(unsafe { take_text(text) })
}

/// The user of this process.
pub fn own_user() -> io::Result<String> {
    let mut token = null_mut();
    // SAFETY: the first argument is always valid, and the last one outlives the call.
    check(unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &mut token) })?;
    // SAFETY: the call has opened it for us.
    let token = unsafe { OwnedHandle::from_raw_handle(token) };
    // A `TOKEN_USER` and the longest SID have 84 bytes.
    let mut buffer = [0u64; 16];
    let mut length = 0;
    // SAFETY: Windows writes at most the buffer's size.
    check(unsafe {
        GetTokenInformation(
            token.as_raw_handle(),
            TokenUser,
            buffer.as_mut_ptr().cast(),
            size_of_val(&buffer) as u32,
            &mut length,
        )
    })?;
    // SAFETY: the buffer is aligned and begins with a `TOKEN_USER`, which points into the buffer.
    unsafe { sid_text((*buffer.as_ptr().cast::<TOKEN_USER>()).User.Sid) }
}

/// The owner of an open pipe.
pub fn owner_of_handle(handle: RawHandle) -> io::Result<String> {
    let (mut owner, mut descriptor) = (null_mut(), null_mut());
    // SAFETY: the caller has the handle open, and the places that are written to outlive the call.
    code(unsafe {
        GetSecurityInfo(
            handle,
            SE_KERNEL_OBJECT,
            OWNER_SECURITY_INFORMATION,
            &mut owner,
            null_mut(),
            null_mut(),
            null_mut(),
            &mut descriptor,
        )
    })?;
    let _descriptor = Local(descriptor);
    // SAFETY: the owner lies in the descriptor.
    unsafe { sid_text(owner) }
}

/// The owner of a file or folder, and its access list.
pub fn owner_and_list(path: &Path) -> io::Result<(String, String)> {
    let path = wide(path);
    let (mut owner, mut descriptor) = (null_mut(), null_mut());
    // SAFETY: the path ends with a zero, and the places that are written to outlive the call.
    code(unsafe {
        GetNamedSecurityInfoW(
            path.as_ptr(),
            SE_FILE_OBJECT,
            OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION,
            &mut owner,
            null_mut(),
            null_mut(),
            null_mut(),
            &mut descriptor,
        )
    })?;
    let descriptor = Local(descriptor);
    let mut list = null_mut();
    // SAFETY: the descriptor is whole, and the pointer that is written to outlives the call.
    check(unsafe {
        ConvertSecurityDescriptorToStringSecurityDescriptorW(
            descriptor.0,
            SDDL_REVISION_1,
            DACL_SECURITY_INFORMATION,
            &mut list,
            null_mut(),
        )
    })?;
    // SAFETY: the owner lies in the descriptor, and the call has allocated the list.
    unsafe { Ok((sid_text(owner)?, take_text(list))) }
}

/// Returns whether an access list lets in nobody but this user and Windows itself:
/// `D:PAI(A;OICI;FA;;;S-1-5-21-…)(A;OICI;FA;;;SY)`.
pub fn lets_in_nobody_but(user: &str, list: &str) -> bool {
    let entries: Vec<&str> = list.split('(').skip(1).collect();
    let is_private = |entry: &&str| {
        let fields: Vec<&str> = entry.trim_end_matches(')').split(';').collect();
        let is_allowing = fields[0].starts_with(['A', 'X']);
        let whom = fields.get(5).copied().unwrap_or_default();
        !is_allowing || whom == user || SYSTEM.contains(&whom)
    };
    // A file system without access lists has none, and then everybody may read.
    list.starts_with("D:") && !entries.is_empty() && entries.iter().all(is_private)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_lets_in_others_is_seen() {
        let user = "S-1-5-21-1-2-3-1001";
        let is_private = |list: &str| lets_in_nobody_but(user, list);
        assert!(is_private("D:PAI(A;OICI;FA;;;S-1-5-21-1-2-3-1001)(A;OICI;FA;;;SY)"));
        assert!(is_private("D:AI(A;ID;FA;;;BA)(D;;FA;;;WD)"));
        assert!(!is_private("D:AI(A;ID;FA;;;S-1-5-21-1-2-3-1001)(A;ID;0x1200a9;;;BU)"));
        assert!(!is_private("D:NO_ACCESS_CONTROL"));
        assert!(!is_private("D:(A;;FA;;;S-1-5-21-1-2-3-1002)"));
    }

    #[test]
    fn what_this_user_makes_is_the_users_own() {
        let folder = tempfile::tempdir().unwrap();
        SecurityDescriptor::of_own_folder().unwrap().give_to(folder.path()).unwrap();
        let (owner, list) = owner_and_list(folder.path()).unwrap();
        let user = own_user().unwrap();
        assert!(owner == user || owner == ADMINISTRATORS, "{owner}");
        assert!(lets_in_nobody_but(&user, &list), "{list}");
    }
}
