import { homedir, userInfo } from "node:os";

/** The user's name and home folder, from the user database where the environment does not say: services have neither. */
export function userNames(env: Readonly<Record<string, string | undefined>>): {
  readonly USER?: string;
  readonly HOME?: string;
} {
  const found = (given: string | undefined, ask: () => string): string | undefined => {
    if (given !== undefined && given !== "") return given;
    try {
      return ask() || undefined;
    } catch {
      return undefined;
    }
  };
  const user = found(env.USER || env.LOGNAME, () => userInfo().username);
  const home = found(env.HOME, homedir);
  return { ...(user === undefined ? {} : { USER: user }), ...(home === undefined ? {} : { HOME: home }) };
}
