/** Whether nobody on the way can read what is sent: HTTPS, or HTTP that does not leave this machine. */
export function isPrivateWay(url: URL): boolean {
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname));
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}
