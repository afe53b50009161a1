/**
 * A random id in the form of a UUID. Ids name sessions and prompts and are no secrets, so they do not need node:crypto,
 * whose loading is a tenth of the time to a first message.
 */
export function newId(): string {
  const digits = (count: number): string => {
    let text = '';
    while (text.length < count) text += Math.floor(Math.random() * 0x10000).toString(16).padStart(4, '0');
    return text.slice(0, count);
  };
  const variant = (8 + Math.floor(Math.random() * 4)).toString(16);
  return `${digits(8)}-${digits(4)}-4${digits(3)}-${variant}${digits(3)}-${digits(12)}`;
}
