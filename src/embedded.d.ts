/** Files carried inside the executable as text. */
declare module "*.lua" {
  const text: string;
  export default text;
}
declare module "*.py" {
  const text: string;
  export default text;
}
declare module "*.jsonl" {
  const text: string;
  export default text;
}
