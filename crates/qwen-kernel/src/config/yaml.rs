//! YAML as JSON values.

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value};

/// Parses a text of one document; an empty text is null.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let documents = Yaml::load_from_str(text).map_err(|error| error.to_string())?;
    match &documents[..] {
        [] => Ok(Value::Null),
        [document] => value(document),
        more => Err(format!("it has {} documents (separated by `---`) instead of one", more.len())),
    }
}

fn value(node: &Yaml<'_>) -> Result<Value, String> {
    Ok(match node {
        Yaml::Value(scalar) => scalar_value(scalar)?,
        Yaml::Sequence(items) => Value::Array(items.iter().map(value).collect::<Result<_, _>>()?),
        Yaml::Mapping(entries) => {
            let mut object = Map::new();
            for (key, item) in entries {
                let key = match value(key)? {
                    Value::String(key) => key,
                    Value::Number(key) => key.to_string(),
                    other => return Err(format!("the key {other} is not a text")),
                };
                object.insert(key, value(item)?);
            }
            Value::Object(object)
        }
        Yaml::Representation(..) | Yaml::Tagged(..) | Yaml::Alias(_) | Yaml::BadValue => {
            return Err("tags and aliases are not supported".to_owned());
        }
    })
}

fn scalar_value(scalar: &Scalar<'_>) -> Result<Value, String> {
    Ok(match scalar {
        Scalar::Null => Value::Null,
        Scalar::Boolean(flag) => Value::Bool(*flag),
        Scalar::Integer(number) => Value::from(*number),
        Scalar::FloatingPoint(number) => {
            let number = serde_json::Number::from_f64(number.into_inner());
            Value::Number(number.ok_or("infinite numbers are not supported")?)
        }
        Scalar::String(text) => Value::String(text.to_string()),
    })
}
