/** Folders that hold credentials, wherever they stand. */
const FOLDERS: Readonly<Record<string, string>> = {
  ".ssh": "SSH keys",
  ".aws": "AWS credentials",
  ".azure": "Azure credentials",
  ".gnupg": "GnuPG keys",
  ".kube": "Kubernetes credentials",
  ".docker": "Docker credentials",
};
const FILES: Readonly<Record<string, string>> = {
  ".netrc": "login names and passwords",
  _netrc: "login names and passwords",
  ".git-credentials": "git credentials",
  ".pgpass": "database passwords",
  ".pypirc": "package index credentials",
  ".vault-token": "a Vault token",
  kubeconfig: "Kubernetes credentials",
};
/** Names that SSH gives its private keys, also with an ending that is not `.pub`. */
const SSH_KEY = /^id_(rsa|dsa|ecdsa|ed25519|ecdsa_sk|ed25519_sk)(\.(?!pub$).*)?$/;
/** Stores whose content is a key, in no text that could be looked at. */
const STORES = /\.(p12|pfx|jks|keystore|ppk|kdbx)$/i;

/** Why a folder or file of that name is a credential; null when the name says nothing. */
export function secretByName(path: string, name: string, isFolder: boolean): string | null {
  if (isFolder) {
    if (path === ".config/gcloud" || path.endsWith("/.config/gcloud")) return "Google Cloud credentials";
    return Object.hasOwn(FOLDERS, name) ? (FOLDERS[name] ?? null) : null;
  }
  if (SSH_KEY.test(name)) return "a private key";
  if (STORES.test(name)) return "a key store";
  return Object.hasOwn(FILES, name) ? (FILES[name] ?? null) : null;
}

/** Bytes at the start of a file that are looked at for a private key. */
export const SECRET_HEAD_BYTES = 16_384;

const KEY_LINE = /^-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----/m;

/**
 * Why a file with that start is a credential: a private key in PEM form. Files whose name says key or certificate
 * are looked through; any other is one only when it begins so, since a source may quote a key.
 */
export function secretByContent(name: string, head: Uint8Array): string | null {
  const isKeyFile = /\.(pem|key|crt|cer|asc)$/i.test(name);
  if (!isKeyFile && !beginsWithDash(head)) return null;
  const text = new TextDecoder("latin1").decode(head.subarray(0, SECRET_HEAD_BYTES));
  const found = KEY_LINE.exec(text);
  if (found === null) return null;
  return isKeyFile || text.slice(0, found.index).trim() === "" ? "a private key" : null;
}

function beginsWithDash(head: Uint8Array): boolean {
  for (const byte of head.subarray(0, 64)) {
    if (byte === 0x2d) return true;
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) return false;
  }
  return false;
}
