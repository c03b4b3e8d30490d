export { basename, dirname, isAbsolute, join, resolve } from "node:path";
